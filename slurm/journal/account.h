// The account of a run: every second of its wall time under one cause, from its journal. A pure
// function. Within an attempt rank 0 speaks for all: its progress page says how long it was in
// which phase.
//
//   launch begins   launch      page made         ...phases...     page stands still  detected next
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
  start,   // agents, health checks, MPI, until the first attempt begins to load
  load,    // reading checkpoints
  train,   // steps that count
  redone,  // steps that had been done before, since the last checkpoint
  evaluate,
  checkpoint,  // what saving keeps the steps waiting
  detect,      // from the last sign of life to knowing
  exclude,     // from there to the next launch: judging, ending old ranks, choosing nodes
  relaunch,    // from there until the ranks begin to load
  finish,      // from the last step on
  idle         // between launches: in the queue, or nobody started it
};
inline constexpr std::size_t kTimeCauses = 11;
std::string_view name_of(TimeCause cause);

struct AttemptAccount {
  std::int64_t generation = 0;
  std::string launch;
  std::vector<std::string> nodes;
  std::int64_t ranks = 0;
  std::string cause;  // why it ended; empty: nobody knows, the launch itself was ended; "running"
  std::string what;
  std::int64_t from_step = -1;  // -1: it never came so far
  std::int64_t to_step = -1;
  double seconds = 0;   // from its launch until its end was known
  double detect = 0;    // of these, from the last sign of life
  double exclude = 0;   // from the end of the attempt before to this launch
  double ranks_up = 0;  // from its launch to rank 0's first sign of life
  double load = 0;
  double first_step = -1;  // from its launch to its first step's end; -1: there was none
  double recovery = -1;    // from knowing of the end before to that
};

struct Account {
  double wall = 0;  // seconds, from the first launch's begin to the last one's end
  std::array<double, kTimeCauses> seconds{};
  std::int64_t launches = 0;
  std::int64_t failures = 0;  // attempts that ended otherwise than finished or as asked
  std::vector<AttemptAccount> attempts;

  double sum() const;
  // Of the wall time, what went into steps that count, and evaluation; 0 of nothing.
  double effective_ratio() const;
  // Between failures; 0 where there was none.
  double mean_hours_between_failures() const;
};

// Events as parse_journal() gives them. What makes no sense counts as far as it does. `is_running`:
// the last launch is still at work, so that its last attempt has not ended.
Account account_of(const std::vector<nlohmann::json>& events, bool is_running = false);

}  // namespace trireme
