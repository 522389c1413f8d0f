// The journal records what every launch of a run did, as JSON lines. It is only ever appended to.
//
//   {"time": seconds since the epoch, "clock": seconds of the steady clock since the launch began,
//    "launch": its number, "event": "launch", ...}
//
// The journal never stops or delays a launch. Two threads of its own write in the order of the
// calls, one to the file and one to stderr, so that a hanging disk does not delay messages. Lines
// that a full disk does not accept are dropped. Only one thread may call it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "slurm/journal/account.h"
#include "src/base/damaged_lines.h"

namespace trireme {

class Journal {
 public:
  // Makes the file with the first line. If the folder is not writable, there is no file.
  Journal(const std::filesystem::path& path, std::string launch);
  // Waits a limited time for lines that have not been written yet.
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void write(std::string_view event, nlohmann::json fields, double clock);
  // Writes a line for people to stderr.
  void say(std::string_view text);

 private:
  class Lane;

  std::string launch_;
  // Shared with its thread, which may outlive this object on a hanging disk.
  std::shared_ptr<Lane> file_;
  std::shared_ptr<Lane> people_;
};

// Returns whether an object is a line of the journal: an event with its launch, whose times and
// other numbers are possible ones.
bool is_journal_line(const nlohmann::json& object);
// Returns how the run in this folder stands, as its other files tell.
RunStanding standing_of(const std::filesystem::path& run);
// Skips lines that are no events, and tells which in `damaged`.
std::vector<nlohmann::json> parse_journal(std::string_view text, DamagedLines& damaged);

}  // namespace trireme
