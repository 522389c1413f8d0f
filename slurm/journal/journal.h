// The journal of a run: what every launch of it did, as JSON lines, appended for ever.
//
//   {"time": seconds since the epoch, "clock": seconds of the steady clock since the launch began,
//    "launch": its number, "event": "launch", ...}
//
// Nothing here stops a launch: lines that a full disk does not take are dropped. One writer.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/base/append_file.h"

namespace trireme {

class Journal {
 public:
  // No file where the folder can't be written to.
  Journal(const std::filesystem::path& path, std::string launch);
  void write(std::string_view event, nlohmann::json fields, double clock);
  bool has_file() const { return file_.has_value(); }

 private:
  std::string launch_;
  std::optional<AppendFile> file_;
};

// Lines that are none are left out; their number is added to `bad_lines`.
std::vector<nlohmann::json> parse_journal(std::string_view text, std::int64_t& bad_lines);

}  // namespace trireme
