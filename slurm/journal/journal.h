// The journal of a run: what every launch of it did, as JSON lines, appended for ever.
//
//   {"time": seconds since the epoch, "clock": seconds of the steady clock since the launch began,
//    "launch": its number, "event": "launch", ...}
//
// Nothing here stops a launch, nor keeps it waiting: threads of the journal's own write, one to the
// file and one to people, each in the order of the calls, so that a disk that hangs silences
// nobody; lines that a full one does not take are dropped. One caller.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class Journal {
 public:
  // No file where the folder can't be written to; it is made with the first line.
  Journal(const std::filesystem::path& path, std::string launch);
  // Waits for what is not written yet, but not for ever.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void write(std::string_view event, nlohmann::json fields, double clock);
  // A line for people, on stderr.
  void say(std::string_view text);

 private:
  class Lane;

  std::string launch_;
  std::shared_ptr<Lane> file_;  // the thread's, too: a disk that hangs may keep it longer than us
  std::shared_ptr<Lane> people_;
};

// Lines that are none are left out; their number is added to `bad_lines`.
std::vector<nlohmann::json> parse_journal(std::string_view text, std::int64_t& bad_lines);

}  // namespace trireme
