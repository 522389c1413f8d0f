// The verdict on an attempt says why it ended, and therefore what happens next. Pure functions; the
// words and codes are those of docs/exit-codes.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme {

// Holds the content of <run>/exit_reason.json.
struct StatedReason {
  int code = 0;
  std::string kind = {};
  std::string message = {};
  int rank = 0;
  std::string host = {};
  std::int64_t step = 0;
  std::string phase = {};
};
// Returns nullopt if the text is no exit reason.
std::optional<StatedReason> parse_exit_reason(const std::string& text);

// A rank that has disappeared before the end of its work.
struct GoneRank {
  std::string node = {};
  int rank = 0;
  int exit_code = 0;  // as recorded on its progress page; 0 if none
};

// A rank that has made no progress within its deadline.
struct StaleRank {
  std::string node = {};
  int rank = 0;
  std::int64_t step = 0;
  std::string phase = {};
  double age = 0;       // seconds
  double deadline = 0;  // seconds
  char state = '?';     // process state letter of proc(5)
};

struct Evidence {
  std::optional<int> launcher_code = {};  // of mpirun or srun: exit code, or 128 + signal
  bool killed_launcher = false;           // whether we killed it, so that its code means nothing
  std::optional<StatedReason> reason = {};
  bool done = false;  // whether this attempt has written the DONE marker
  bool stop_asked = false;
  int end_signal = 0;              // a second request to stop, which ended the ranks at once
  std::int64_t step = -1;          // the last step of rank 0 that was seen; -1 if none
  std::int64_t durable_step = -1;  // of the newest checkpoint on disk; -1 if there is none
  bool all_ranks_seen = false;
  std::vector<std::string> lost_nodes = {};
  std::vector<GoneRank> gone = {};    // those that were gone before we ended any
  std::vector<StaleRank> stale = {};  // those because of which we ended the attempt
  std::int64_t oom_kills = 0;         // on its nodes, during the attempt
};

enum class Cause {
  finished,
  stopped,  // on request: by a signal, the time limit or preemption
  usage,
  numerics,
  data,
  not_found,
  refused,
  node_death,
  out_of_memory,
  hang,
  device,
  io,
  process_death,
  early_exit,  // code 0 without a DONE marker
  start,       // some ranks never started
  communication
};
std::string_view name_of(Cause cause);

struct Verdict {
  Cause cause = Cause::process_death;
  int code = 0;                         // exit code of this program if the launch ends now
  std::string what = {};                // one line for people
  std::vector<std::string> nodes = {};  // the nodes responsible, if known
};
Verdict judge(const Evidence& evidence);

// Returns whether a further attempt cannot help.
bool is_final(Cause cause);

}  // namespace trireme
