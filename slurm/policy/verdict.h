// The verdict: why an attempt ended, from all that is known about it, and what that asks for. Pure
// functions; the words and codes are those of docs/exit-codes.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme {

// What <run>/exit_reason.json says.
struct StatedReason {
  int code = 0;
  std::string kind = {};
  std::string message = {};
  int rank = 0;
  std::string host = {};
  std::int64_t step = 0;
  std::string phase = {};
};
// Nothing for what is none.
std::optional<StatedReason> parse_exit_reason(const std::string& text);

// A rank that was there and is not, though it had not come to its end.
struct GoneRank {
  std::string node = {};
  int rank = 0;
  int exit_code = 0;  // as it said on its page; 0: it said none
};

// A rank that has made no progress within its deadline.
struct StaleRank {
  std::string node = {};
  int rank = 0;
  std::int64_t step = 0;
  std::string phase = {};
  double age = 0;       // seconds
  double deadline = 0;  // seconds
  char state = '?';     // proc(5)'s letter
};

struct Evidence {
  std::optional<int> launcher_code = {};  // of mpirun or srun: its exit code, or 128 and the signal
  bool killed_launcher = false;           // by us: then its code says nothing
  std::optional<StatedReason> reason = {};
  bool done = false;  // the DONE marker is of this attempt
  bool stop_asked = false;
  bool all_ranks_seen = false;
  std::vector<std::string> lost_nodes = {};
  std::vector<GoneRank> gone = {};    // before we ended any
  std::vector<StaleRank> stale = {};  // for which we ended the attempt
  std::int64_t oom_kills = 0;         // on its nodes, meanwhile
};

enum class Cause {
  finished,
  stopped,  // saved, as asked: by a signal, the time limit, preemption
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
  early_exit,  // code 0 without DONE
  start,       // the ranks never all came up
  communication
};
std::string_view name_of(Cause cause);

struct Verdict {
  Cause cause = Cause::process_death;
  int code = 0;                         // which this program ends with, if this is the end
  std::string what = {};                // for people: one line
  std::vector<std::string> nodes = {};  // to which it is due, where known
};
Verdict judge(const Evidence& evidence);

// Whether the next attempt could go better.
bool is_final(Cause cause);

}  // namespace trireme
