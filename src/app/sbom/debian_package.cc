#include "src/app/sbom/debian_package.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "src/app/sbom/text_lines.h"

namespace trireme {
namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Returns whether the text begins with a letter or digit and has only these and the `others`. This
// also keeps a name from being a path.
bool is_word(std::string_view text, std::string_view others) {
  return !text.empty() && text.size() <= 256 && is_alphanumeric(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_alphanumeric(c) || others.find(c) != std::string_view::npos;
         });
}
bool is_package_name(std::string_view text) { return is_word(text, "+-."); }
bool is_version(std::string_view text) { return is_word(text, ".+~:-"); }
bool is_architecture(std::string_view text) { return is_word(text, "-"); }

// The package-url specification leaves letters, digits, ".", "-", "_", "~" and ":" as they are.
std::string percent_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool plain = is_alphanumeric(c) || std::string_view(".-_~:").find(c) != std::string::npos;
    encoded += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return encoded;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

using Fields = std::map<std::string_view, std::string_view>;

std::string_view field(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : found->second;
}

// The field Source is "glibc" or "gcc-12 (12.2.0-14)", with a version if it is another than the
// package's; without the field the source has the name of the package.
bool read_source(std::string_view text, DebianPackage& package) {
  if (text.empty()) {
    package.source = package.name;
    package.source_version = package.version;
    return true;
  }
  const std::size_t blank = std::min(text.find(' '), text.size());
  std::string_view version = trimmed(text.substr(blank));
  if (version.empty()) {
    version = package.version;
  } else if (version.starts_with('(') && version.ends_with(')')) {
    version = version.substr(1, version.size() - 2);
  }
  package.source = text.substr(0, blank);
  package.source_version = version;
  return is_package_name(package.source) && is_version(package.source_version);
}

std::optional<DebianPackage> package_from(const Fields& fields) {
  DebianPackage package;
  package.name = field(fields, "Package");
  package.version = field(fields, "Version");
  package.architecture = field(fields, "Architecture");
  // "install ok installed": what is wanted, whether there is an error, the state.
  const bool installed = field(fields, "Status").ends_with(" installed");
  if (!installed || !is_package_name(package.name) || !is_version(package.version) ||
      !is_architecture(package.architecture) || !read_source(field(fields, "Source"), package)) {
    return std::nullopt;
  }
  return package;
}

}  // namespace

std::string package_url(const DebianPackage& package) {
  return fmt::format("pkg:deb/{}/{}@{}?arch={}", percent_encoded(package.distribution),
                     percent_encoded(package.name), percent_encoded(package.version),
                     percent_encoded(package.architecture));
}

std::vector<DebianPackage> parse_dpkg_status(std::string_view text) {
  std::vector<DebianPackage> packages;
  Fields fields;
  const auto end_paragraph = [&] {
    if (auto package = package_from(fields)) {
      packages.push_back(std::move(*package));
    }
    fields.clear();
  };
  for_each_line(text, [&](std::string_view line) {
    const std::size_t colon = line.find(':');
    if (trimmed(line).empty()) {
      end_paragraph();
    } else if (line.front() != ' ' && line.front() != '\t' && colon != std::string_view::npos) {
      fields.try_emplace(line.substr(0, colon), trimmed(line.substr(colon + 1)));
    }
  });
  end_paragraph();
  return packages;
}

std::string distribution_of(std::string_view os_release) {
  std::string distribution = "debian";
  for_each_line(os_release, [&](std::string_view line) {
    if (line == "ID=ubuntu" || line == "ID=\"ubuntu\"") {
      distribution = "ubuntu";
    }
  });
  return distribution;
}

}  // namespace trireme
