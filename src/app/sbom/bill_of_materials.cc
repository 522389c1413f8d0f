#include "src/app/sbom/bill_of_materials.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "src/app/sbom/dpkg_files.h"
#include "src/app/sbom/loaded_files.h"
#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

constexpr const char* kOwnProgram = "/proc/self/exe";

std::string sha256_of_file(const std::filesystem::path& path) {
  const File file = File::open_to_read(path);
  Sha256 digest;
  std::vector<char> buffer(std::size_t{1} << 20);
  std::int64_t at = 0;
  while (const std::int64_t bytes =
             file.read_at(at, buffer.data(), static_cast<std::int64_t>(buffer.size()))) {
    digest.update(buffer.data(), bytes);
    at += bytes;
  }
  return digest.finish_hex();
}

// Precedes each text by its length, so that no two lists give the same result.
std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += fmt::format("{}:{}\n", text.size(), text);
  }
  return all;
}

}  // namespace

BillOfMaterials own_bill_of_materials(std::string_view name, std::string_view version,
                                      std::string_view commit) {
  BillOfMaterials bill{.name = std::string(name),
                       .version = std::string(version),
                       .commit = std::string(commit),
                       .path = std::filesystem::read_symlink(kOwnProgram).string(),
                       .sha256 = sha256_of_file(kOwnProgram),
                       .objects = {},
                       .created = creation_time(std::getenv("SOURCE_DATE_EPOCH"))};
  std::vector<std::string> paths;
  for (LoadedFile& file : loaded_files()) {
    paths.push_back(file.path);
    bill.objects.push_back({.path = file.path,
                            .soname = std::move(file.soname),
                            .sha256 = sha256_of_file(file.path),
                            .package = std::nullopt});
  }
  const auto packages = debian_packages_of(paths);
  for (std::size_t i = 0; i < packages.size(); ++i) {
    bill.objects[i].package = packages[i];
  }
  return bill;
}

std::string creation_time(const char* source_date_epoch) {
  if (source_date_epoch == nullptr) {
    return utc_now();
  }
  constexpr std::int64_t kEndOf9999 = 253402300799;
  const std::string_view text = source_date_epoch;
  std::int64_t seconds = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc{} || end != text.data() + text.size() || seconds < 0 ||
      seconds > kEndOf9999) {
    throw ConfigError(fmt::format(
        "SOURCE_DATE_EPOCH is '{}', not a number of seconds from 0 to {}: correct or unset it",
        text, kEndOf9999));
  }
  return utc_text(seconds);
}

std::string document_uuid(const BillOfMaterials& bill) {
  std::vector<std::string> parts;
  for (const LoadedObject& object : bill.objects) {
    const DebianPackage package = object.package.value_or(DebianPackage{});
    parts.push_back(
        joined({name_of(object), object.sha256, package.distribution, package.name, package.version,
                package.architecture, package.source, package.source_version}));
  }
  std::sort(parts.begin(), parts.end());
  parts.insert(parts.begin(), joined({bill.name, bill.version, bill.commit, bill.sha256}));
  std::string digits = sha256_hex(joined(parts)).substr(0, 32);
  constexpr std::string_view kVariants = "89ab";
  digits[12] = '8';                                                    // version
  digits[16] = kVariants[static_cast<unsigned char>(digits[16]) % 4];  // variant
  return fmt::format("{}-{}-{}-{}-{}", digits.substr(0, 8), digits.substr(8, 4),
                     digits.substr(12, 4), digits.substr(16, 4), digits.substr(20));
}

std::string name_of(const LoadedObject& object) {
  return object.soname.empty() ? std::filesystem::path(object.path).filename().string()
                               : object.soname;
}

std::string object_id(const BillOfMaterials& bill, std::size_t index) {
  std::string name = name_of(bill.objects.at(index));
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
  };
  std::replace_if(
      name.begin(), name.end(), [&](char c) { return !allowed(c); }, '-');
  return fmt::format("Library-{}-{}", index + 1, name);
}

}  // namespace trireme
