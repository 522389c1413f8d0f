#include "src/train/memory/available_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

// Returns the number in a file, or nothing if the file is missing or holds a word such as "max".
std::optional<std::int64_t> number_in(const fs::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value && value >= 0 ? std::optional(value) : std::nullopt;
}

// Returns the number after a name, in a file of lines "name number".
std::optional<std::int64_t> field_in(const fs::path& path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + " ") || line.starts_with(field + ":")) {
      try {
        return std::stoll(line.substr(field.size() + 1));
      } catch (const std::exception&) {
        return std::nullopt;
      }
    }
  }
  return std::nullopt;
}

// GroupFiles holds the names of one cgroup version's files.
struct GroupFiles {
  const char* limit;
  const char* used;
  const char* cache;  // field in memory.stat
};
constexpr GroupFiles kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr GroupFiles kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                                  "total_inactive_file"};

// Returns the least memory left in the group and the groups above it, because each limit applies.
AvailableMemory least_of_groups(const fs::path& top, const std::string& group,
                                const GroupFiles& files) {
  AvailableMemory least{kUnlimited, ""};
  fs::path folder = (top / fs::path(group).relative_path()).lexically_normal();
  folder = folder.has_filename() ? folder : folder.parent_path();
  for (;; folder = folder.parent_path()) {
    const auto limit = number_in(folder / files.limit);
    const auto used = number_in(folder / files.used);
    if (limit && used) {
      const std::int64_t cache = field_in(folder / "memory.stat", files.cache).value_or(0);
      const std::int64_t busy = *used - std::clamp<std::int64_t>(cache, 0, *used);
      const std::int64_t left = std::max<std::int64_t>(*limit - busy, 0);
      if (left < least.bytes) {
        least = {left, "control group " + folder.string()};
      }
    }
    if (folder == top || !folder.has_relative_path()) {
      return least;
    }
  }
}

}  // namespace

AvailableMemory available_memory(const fs::path& root) {
  AvailableMemory least{kUnlimited, "nothing known"};
  if (const auto kib = field_in(root / "proc/meminfo", "MemAvailable");
      kib && *kib >= 0 && *kib < kUnlimited / 1024) {
    least = {*kib * 1024, "MemAvailable"};
  }
  const auto consider = [&](const AvailableMemory& other) {
    if (other.bytes < least.bytes) {
      least = other;
    }
  };
  // Each line is hierarchy:controllers:path.
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t second = line.find(':', line.find(':') + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string path = line.substr(second + 1);
    const std::string controllers = "," + line.substr(0, second).substr(line.find(':') + 1) + ",";
    if (line.starts_with("0::")) {
      consider(least_of_groups(root / "sys/fs/cgroup", path, kVersion2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      consider(least_of_groups(root / "sys/fs/cgroup/memory", path, kVersion1));
    }
  }
  return least;
}

}  // namespace trireme
