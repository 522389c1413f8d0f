// Reads files that hold one JSON object per line and grow with a run: metrics, logs, journals.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/damaged_lines.h"
#include "src/base/run_text.h"

namespace trireme {

// Calls use() with each object of a text that has one per line. use() returns whether it is one of
// those that the file should have. Returns the lines that hold none, or one that parse_json_line()
// refuses.
DamagedLines use_objects(std::string_view text,
                         const std::function<bool(const nlohmann::json&)>& use);

// In the last so many bytes of a file, the newest lines are looked for.
inline constexpr std::int64_t kLastBytes = 256 << 10;

struct LastLines {
  std::vector<nlohmann::json> objects;
  DamagedLines damaged;  // numbered from the beginning of the file
};

// Returns whether an object is a line of metrics.jsonl: its step is a whole number up to 1e15.
bool is_metrics_line(const nlohmann::json& object);

// Tells the objects that a file should have from others, which are damaged lines.
using ObjectTest = bool (*)(const nlohmann::json& object);

// Returns the objects in the whole lines among the last `most_bytes` of a file, and none if it is
// no regular file. is_expected: null for any object. Throws IoError if reading fails.
LastLines last_json_lines(const std::filesystem::path& path, std::int64_t most_bytes = kLastBytes,
                          ObjectTest is_expected = nullptr);
// Does the same with a file that may be encrypted, which is read as a whole. Also throws what
// TextReader::read() throws.
LastLines last_json_lines(const std::filesystem::path& path, const TextReader& reader,
                          std::int64_t most_bytes = kLastBytes, ObjectTest is_expected = nullptr);

}  // namespace trireme
