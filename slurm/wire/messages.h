// What the processes of a launch tell each other, as JSON in frames. Plain values; reading refuses
// with a DataError whatever the writers don't make.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/progress_page.h"

namespace trireme {

inline constexpr std::int64_t kWireVersion = 2;

// The listener's first word.
struct Challenge {
  std::string nonce = {};
};

// Who calls.
struct Hello {
  std::string role = {};  // "agent", "deputy", "copy"
  std::string node = {};
  std::string nonce = {};
  std::string proof = {};
  std::int64_t pid = 0;
  int port = 0;                             // of an agent: where it takes copies of checkpoints
  std::vector<std::string> addresses = {};  // and on which of its addresses
};

struct Welcome {
  std::string proof = {};
};

// A rank as its agent sees it.
struct RankState {
  Progress page = {};
  double age = 0;     // seconds since the page changed
  double lived = 0;   // seconds since the page was made
  bool gone = false;  // there is no such process any more
  char state = '?';   // proc(5)'s letter
};

// A checkpoint by its age: a later run of the checkpoint folder (its generation, which is not the
// launch's) writes newer ones, and in one run the later step is the newer.
struct SavedStep {
  std::int64_t generation = 0;
  std::int64_t step = -1;  // -1: there is none
  auto operator<=>(const SavedStep&) const = default;
};

// What an agent says every second, and at once when a rank comes, goes, or does its first step.
struct AgentReport {
  bool healthy = false;  // the health check, if there is one, was passed
  bool settled = false;  // ... or has been failed: `trouble` says how
  std::string trouble = {};
  std::int64_t oom_kills = 0;  // of its machine, since that was started
  std::int64_t cleared = 0;    // the latest generation for which nothing older is left here
  SavedStep memory_step = {};  // the newest checkpoint in this node's memory
  std::vector<RankState> ranks = {};
};

// What an agent or a deputy is told to do.
struct Order {
  enum class Kind {
    ping,     // the supervisor lives
    clear,    // end every rank of a generation below `generation`
    partner,  // copy checkpoints to this node from now on; without a port: to nobody
    // Remove what was made, end the node's ranks, end; with a generation above 0: the launch is
    // over, and nothing of it may be left on the machine.
    bye
  };
  Kind kind = Kind::ping;
  std::int64_t generation = 0;
  std::string node = {};
  int port = 0;
  std::vector<std::string> addresses = {};
};

std::string to_json(const Challenge& message);
std::string to_json(const Hello& message);
std::string to_json(const Welcome& message);
std::string to_json(const AgentReport& message);
std::string to_json(const Order& message);
Challenge parse_challenge(std::string_view text);
Hello parse_hello(std::string_view text);
Welcome parse_welcome(std::string_view text);
AgentReport parse_agent_report(std::string_view text);
Order parse_order(std::string_view text);

}  // namespace trireme
