// Defines the messages between the processes of a launch, as JSON in frames. They are plain values.
// Parsing throws DataError for text that the writers cannot have produced.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/progress_page.h"

namespace trireme {

inline constexpr std::int64_t kWireVersion = 3;

// A Challenge is the first message of a listener.
struct Challenge {
  std::string nonce = {};
};

// A Hello is the first message of a caller and says who it is.
struct Hello {
  std::string role = {};  // "agent", "deputy" or "copy"
  std::string node = {};
  std::string nonce = {};
  std::string proof = {};
  std::int64_t pid = 0;
  int port = 0;                             // of an agent: where it accepts copies of checkpoints
  std::vector<std::string> addresses = {};  // the caller's own addresses
};

struct Welcome {
  std::string proof = {};
};

// Describes the state of a rank as its agent sees it.
struct RankState {
  Progress page = {};
  double age = 0;     // seconds since the progress page changed
  double lived = 0;   // seconds since the progress page was made
  bool gone = false;  // whether the process has ended
  char state = '?';   // process state letter of proc(5)
};

// Identifies a checkpoint. Checkpoints are ordered by age: the generation is that of the checkpoint
// folder, not the attempt's; a later generation writes newer checkpoints, and within one the later
// step is newer.
struct SavedStep {
  std::int64_t generation = 0;
  std::int64_t step = -1;  // -1 if there is none
  auto operator<=>(const SavedStep&) const = default;
};

// An agent sends a report every second, and at once when a rank appears, disappears or finishes its
// first step.
struct AgentReport {
  bool healthy = false;  // whether the health check, if any, has passed
  bool settled = false;  // whether the health check is over; if it failed, `trouble` says why
  std::string trouble = {};
  std::int64_t oom_kills = 0;  // on its machine, since that was started
  std::int64_t cleared = 0;    // no rank of an attempt below this one is left on the node
  SavedStep memory_step = {};  // the newest checkpoint in this node's memory
  std::vector<RankState> ranks = {};
};

// An Order goes to an agent or a deputy.
struct Order {
  enum class Kind {
    ping,     // shows that the supervisor is alive
    clear,    // end every rank of an earlier attempt than `attempt`
    partner,  // copy checkpoints to this node from now on; to none if the port is 0
    // Clean up, end the node's ranks and exit. If `attempt` is above 0, the launch is over, and no
    // process of it may remain on the machine.
    bye
  };
  Kind kind = Kind::ping;
  std::int64_t attempt = 0;
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
