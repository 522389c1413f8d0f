// The names of the logs that a rank has rotated away (src/base/log.h). Private to this folder.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace trireme {

inline constexpr std::string_view kLogSuffix = ".jsonl";
inline constexpr std::string_view kRotatedSuffix = ".1.jsonl";

// Returns whether it is logs/rank-00000.1.jsonl.
inline bool is_rotated_log(const std::filesystem::path& path) {
  return path.parent_path().filename() == "logs" && path.filename().string().starts_with("rank-") &&
         path.filename().string().ends_with(kRotatedSuffix);
}

// Returns logs/rank-00000.jsonl for logs/rank-00000.1.jsonl. Precondition: is_rotated_log().
inline std::filesystem::path current_log(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  return path.parent_path() /
         (name.substr(0, name.size() - kRotatedSuffix.size()) + std::string(kLogSuffix));
}

// Returns logs/rank-00000.1.jsonl for logs/rank-00000.jsonl, and "" for other files, which none
// precedes.
inline std::filesystem::path rotated_log(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const bool is_log = path.parent_path().filename() == "logs" && name.starts_with("rank-") &&
                      name.ends_with(kLogSuffix) && !is_rotated_log(path);
  return is_log ? path.parent_path() / (name.substr(0, name.size() - kLogSuffix.size()) +
                                        std::string(kRotatedSuffix))
                : std::filesystem::path();
}

}  // namespace trireme
