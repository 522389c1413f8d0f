#include "src/app/sbom/dpkg_files.h"

#include <algorithm>
#include <map>

#include "src/app/sbom/text_lines.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxBytes = std::int64_t{256} << 20;

// Returns nothing if the file cannot be read, for whatever reason.
std::optional<std::string> text_of(const fs::path& path) {
  try {
    return read_file(path, kMaxBytes);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<std::string> merged_folders(const fs::path& root) {
  std::vector<std::string> merged;
  for (const char* name : {"bin", "lib", "lib32", "lib64", "libo32", "libx32", "sbin"}) {
    std::error_code none;
    if (fs::is_symlink(root / name, none) &&
        fs::equivalent(root / name, root / "usr" / name, none)) {
      merged.push_back(std::string("/") + name);
    }
  }
  return merged;
}

// Returns the .list files in a fixed order.
std::vector<fs::path> list_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == ".list") {
      files.push_back(at->path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

// owner: "libc6:amd64", or "bash" for packages that are installed for one architecture only.
const DebianPackage* package_named(const std::vector<DebianPackage>& packages,
                                   std::string_view owner) {
  const std::size_t colon = std::min(owner.find(':'), owner.size());
  const std::string_view architecture = owner.substr(std::min(colon + 1, owner.size()));
  const auto found = std::find_if(packages.begin(), packages.end(), [&](const auto& package) {
    return package.name == owner.substr(0, colon) &&
           (architecture.empty() || package.architecture == architecture);
  });
  return found == packages.end() ? nullptr : &*found;
}

// Returns the path of the copyright file if it exists.
std::string copyright_of(const DebianPackage& package, const fs::path& root) {
  const fs::path path = fs::path("/usr/share/doc") / package.name / "copyright";
  std::error_code none;
  return fs::is_regular_file(root / path.relative_path(), none) ? path.string() : "";
}

// Returns the name of the list that has each path.
std::map<std::string, std::string> owners_of(const std::vector<std::string>& paths,
                                             const fs::path& root) {
  std::map<std::string, std::string> owners;
  const std::set<std::string> wanted(paths.begin(), paths.end());
  const std::vector<std::string> merged = merged_folders(root);
  for (const fs::path& file : list_files(root / "var/lib/dpkg/info")) {
    for (const std::string& path : listed_paths(text_of(file).value_or(""), wanted, merged)) {
      owners.try_emplace(path, file.stem().string());
    }
  }
  return owners;
}

}  // namespace

std::set<std::string> listed_paths(std::string_view list, const std::set<std::string>& wanted,
                                   const std::vector<std::string>& merged) {
  std::set<std::string> found;
  for_each_line(list, [&](std::string_view line) {
    std::string path(line);
    for (const std::string& folder : merged) {
      if (line.starts_with(folder) && line.substr(folder.size()).starts_with('/')) {
        path.insert(0, "/usr");
        break;
      }
    }
    if (wanted.contains(path)) {
      found.insert(std::move(path));
    }
  });
  return found;
}

std::vector<std::optional<DebianPackage>> debian_packages_of(const std::vector<std::string>& paths,
                                                             const fs::path& root) {
  const auto owners = owners_of(paths, root);
  std::vector<DebianPackage> installed;
  if (!owners.empty()) {
    installed = parse_dpkg_status(text_of(root / "var/lib/dpkg/status").value_or(""));
  }
  const std::string distribution = distribution_of(text_of(root / "etc/os-release").value_or(""));
  std::vector<std::optional<DebianPackage>> packages(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const auto owner = owners.find(paths[i]);
    if (owner == owners.end()) {
      continue;
    }
    if (const DebianPackage* const package = package_named(installed, owner->second)) {
      packages[i] = *package;
      packages[i]->distribution = distribution;
      packages[i]->copyright = copyright_of(*package, root);
    }
  }
  return packages;
}

}  // namespace trireme
