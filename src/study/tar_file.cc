#include "src/study/tar_file.h"

#include <algorithm>
#include <fstream>

#include <fmt/core.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameBytes = 100;
constexpr std::size_t kPrefixBytes = 155;
constexpr std::size_t kChecksumAt = 148;
constexpr std::size_t kMagicAt = 257;
constexpr std::string_view kMagic = "ustar";

// Divides a path into the prefix and the name of the header.
std::pair<std::string, std::string> divided(const std::string& path) {
  if (path.size() <= kNameBytes) {
    return {"", path};
  }
  const std::size_t slash = path.find('/', path.size() - kNameBytes - 1);
  if (slash == std::string::npos || slash > kPrefixBytes || slash + 1 == path.size()) {
    throw ConfigError(fmt::format("the name {} is too long for a tar archive", path));
  }
  return {path.substr(0, slash), path.substr(slash + 1)};
}

void put(std::string& header, std::size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

}  // namespace

std::string tar_entry(const std::string& name, std::string_view contents, std::int64_t time) {
  const auto [prefix, last] = divided(name);
  std::string header(kBlock, '\0');
  put(header, 0, last);
  put(header, 100, "0000644");
  put(header, 108, "0000000");
  put(header, 116, "0000000");
  put(header, 124, fmt::format("{:011o}", contents.size()));
  put(header, 136, fmt::format("{:011o}", std::clamp<std::int64_t>(time, 0, 077777777777)));
  put(header, kChecksumAt, "        ");
  header[156] = '0';  // a regular file
  put(header, kMagicAt, kMagic);
  put(header, kMagicAt + kMagic.size() + 1, "00");
  put(header, 345, prefix);
  unsigned sum = 0;
  for (const char c : header) {
    sum += static_cast<unsigned char>(c);
  }
  put(header, kChecksumAt, fmt::format("{:06o}", sum));
  header[kChecksumAt + 6] = '\0';
  std::string entry = header + std::string(contents);
  entry.resize((entry.size() + kBlock - 1) / kBlock * kBlock, '\0');
  return entry;
}

std::string tar_end() { return std::string(2 * kBlock, '\0'); }

bool may_become_tar(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none) ||
      std::filesystem::file_size(file, none) == 0) {
    return true;
  }
  std::string header(kMagicAt + kMagic.size(), '\0');
  std::ifstream(file, std::ios::binary).read(header.data(), std::ssize(header));
  return header.ends_with(kMagic);
}

}  // namespace trireme
