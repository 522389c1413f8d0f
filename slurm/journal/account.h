// The account of a run assigns every second of its wall time to one cause, from its journal. A pure
// function. Within an attempt it relies on rank 0, whose progress page records the time spent in
// each phase.
//
//   launch begins   launch      page made         ...phases...     page unchanged     detected next
//     |--- start ----|-- start or relaunch --|load|train|...|------- detect --------|- exclude -|
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

enum class TimeCause : std::uint8_t {
  start,   // agents, health checks and MPI, until the first attempt begins to load
  load,    // reading checkpoints
  train,   // steps that count
  redone,  // steps that repeat those lost since the last checkpoint
  evaluate,
  checkpoint,  // time for which saving delays the steps
  detect,      // from the last sign of life until the fault is known
  exclude,     // from then to the next launch of ranks: diagnosis, ending old ranks, choosing nodes
  relaunch,    // from that launch until the ranks begin to load
  finish,      // after the last step
  idle         // between launches: the job was in the queue or was not started
};
inline constexpr std::size_t kTimeCauses = 11;
std::string_view name_of(TimeCause cause);

// The cause of an attempt whose end the journal lacks, although the launch went on or ended after
// it. Why it ended is unknown.
inline constexpr const char* kNotRecorded = "not recorded";

struct AttemptAccount {
  std::int64_t number = 0;  // from 1 in each launch
  std::string launch;
  std::int64_t launch_number = 0;  // 1 for the first launch of the run
  std::vector<std::string> nodes;
  std::int64_t ranks = 0;
  // Why it ended; empty if unknown because the launch was killed; "running"; kNotRecorded.
  std::string cause;
  std::string what;
  std::int64_t from_step = -1;  // -1 if it never got that far
  std::int64_t to_step = -1;
  double seconds = 0;   // from its launch until its end was noticed
  double detect = 0;    // the part of these after the last sign of life
  double exclude = 0;   // from the end of the previous attempt to this launch
  double ranks_up = 0;  // from its launch to rank 0's first sign of life
  double load = 0;
  double first_step = -1;  // from its launch to the end of its first step; -1 if none
  double recovery = -1;    // from the end of the previous attempt to that step's end; -1 if none
};

struct Account {
  double wall = 0;  // seconds from the start of the first launch to the end of the last one
  std::array<double, kTimeCauses> seconds{};
  std::int64_t launches = 0;
  // Whether the journal lacks events, so that attempts, failures and times may be missing.
  bool is_incomplete = false;
  // Attempts that neither finished nor stopped on request nor were refused at their start. One
  // whose end is not recorded is a failure if another attempt of the same launch follows.
  std::int64_t failures = 0;
  std::vector<AttemptAccount> attempts;

  double sum() const;
  // Returns the fraction of the wall time that went into useful steps and evaluation; 0 without
  // wall time.
  double effective_ratio() const;
  // Returns the mean time between failures; 0 if there were none.
  double mean_hours_between_failures() const;
};

// Returns the key of the attempt's number in an event. Journals of earlier versions call it
// "generation".
const char* attempt_key(const nlohmann::json& event);
// Returns whether an event "attempt_end" only says that the ranks were refused before they loaded
// or computed anything, because of a wrong configuration or another run in the folder. That is no
// fault of the run.
bool is_refused_start(const nlohmann::json& attempt_end);

// How a run stands, as its other files than the journal tell.
enum class RunStanding : std::uint8_t {
  ended,    // or not known
  running,  // the last launch is still at work, so that its last attempt has not ended
  done      // all steps are done, so that a journal in which no attempt finishes was cut off
};

// events: as returned by parse_journal(); incomplete ones are used as far as possible.
Account account_of(const std::vector<nlohmann::json>& events,
                   RunStanding standing = RunStanding::ended);

}  // namespace trireme
