#include "src/policy/file_place.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// mountinfo writes blanks, tabs, line ends and backslashes as \040 and the like.
std::string unescaped(std::string_view text) {
  std::string path;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_octal = text[i] == '\\' && i + 3 < text.size() &&
                          std::all_of(text.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                      text.begin() + static_cast<std::ptrdiff_t>(i) + 4,
                                      [](char c) { return c >= '0' && c <= '7'; });
    if (is_octal) {
      path += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                (text[i + 3] - '0'));
      i += 3;
    } else {
      path += text[i];
    }
  }
  return path;
}

}  // namespace

bool lies_below(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end();
}

std::vector<fs::path> parse_mounts(std::string_view mountinfo) {
  constexpr int kMountPoint = 4;  // field of a line, from 0
  std::vector<fs::path> mounts;
  while (!mountinfo.empty()) {
    std::string_view line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(line.size() + 1, mountinfo.size()));
    for (int field = 0; field < kMountPoint; ++field) {
      const std::size_t blank = line.find(' ');
      line.remove_prefix(blank == std::string_view::npos ? line.size() : blank + 1);
    }
    const fs::path mount = unescaped(line.substr(0, line.find(' ')));
    if (mount.is_absolute()) {
      mounts.push_back(mount);
    }
  }
  return mounts;
}

fs::path mount_of(const fs::path& path, const std::vector<fs::path>& mounts) {
  fs::path longest = "/";
  for (const fs::path& mount : mounts) {
    if (lies_below(path, mount) && mount.native().size() > longest.native().size()) {
      longest = mount;
    }
  }
  return longest;
}

FilePlace place_of(const fs::path& path) {
  std::error_code code;
  fs::path at = fs::absolute(path, code);
  if (!code) {
    at = fs::weakly_canonical(at, code);
  }
  if (code) {
    throw PolicyError(fmt::format("{}: it cannot be found out where this lies: {}",
                                  printable(path.string()), code.message()));
  }
  if (!at.has_filename() && at.has_relative_path()) {
    at = at.parent_path();
  }
  return {at, mount_of(at, parse_mounts(read_file("/proc/self/mountinfo")))};
}

}  // namespace trireme
