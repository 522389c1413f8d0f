#include "src/base/fault.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <thread>

#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

using Kind = FaultAction::Kind;

struct LiveRule {
  explicit LiveRule(FaultRule the_rule) : rule(std::move(the_rule)) {}
  FaultRule rule;
  std::atomic<std::int64_t> passages{0};
};

// The plan in force. Only arm_faults() and watch_faults() change it, while no other thread passes
// fault points.
struct Plan {
  int rank = 0;
  std::function<void(std::string_view)> watch;
  std::vector<std::unique_ptr<LiveRule>> rules;
};
Plan& plan() {
  static Plan& the_plan = *new Plan;  // never destroyed, for threads that outlive main()
  return the_plan;
}

thread_local int pauses = 0;

// Writes directly to the descriptor, because the process may end right after.
void say(const std::string& text) { (void)!::write(STDERR_FILENO, text.data(), text.size()); }

// Returns the rule that applies to this passage, or null.
const FaultRule* next_fault(std::string_view site) {
  if (pauses > 0) {
    return nullptr;
  }
  if (plan().watch) {
    plan().watch(site);
  }
  const FaultRule* striking = nullptr;
  for (const auto& live : plan().rules) {
    if (live->rule.site != site) {
      continue;
    }
    const std::int64_t passage = ++live->passages;
    const FaultRule& rule = live->rule;
    if (passage == rule.nth || (rule.and_later && passage > rule.nth)) {
      striking = &rule;
      if (passage == rule.nth) {
        say(fmt::format("trireme: rank {}: planned fault: {}\n", plan().rank, to_text(rule)));
      }
    }
  }
  return striking;
}

[[noreturn]] void spin() {
  volatile std::uint64_t turns = 0;
  while (true) {
    turns = turns + 1;
  }
}

// Runs the actions that end, stop or delay the process; the others are left to the caller.
void act(const FaultAction& action, std::string_view site) {
  switch (action.kind) {
    case Kind::kill:
      ::kill(::getpid(), SIGKILL);
      ::pause();
      break;
    case Kind::stop:
      ::kill(::getpid(), SIGSTOP);
      break;
    case Kind::segv:
      ::raise(SIGSEGV);
      break;
    case Kind::abort:
      std::abort();
    case Kind::exit:
      std::_Exit(action.number);
    case Kind::raise:
      throw std::runtime_error(fmt::format("planned fault at {}", site));
    case Kind::spin:
      spin();
    case Kind::sleep:
      std::this_thread::sleep_for(std::chrono::duration<double>(action.seconds));
      break;
    case Kind::error:
    case Kind::corrupt:
    case Kind::shorten:
    case Kind::nan:
    case Kind::scale:
      break;
  }
}

// Changes the bytes that pass the fault point, which are f32 values for actions on numbers.
void change(const FaultAction& action, void* data, std::int64_t bytes) {
  auto* const values = static_cast<float*>(data);
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(float));
  if (action.kind == Kind::corrupt && bytes > 0) {
    // If the data is f32, this flips the second-highest bit of a mantissa.
    const std::int64_t at = std::min(bytes / 2 / 4 * 4 + 2, bytes - 1);
    auto* const byte = static_cast<unsigned char*>(data) + at;
    *byte = static_cast<unsigned char>(*byte ^ 0x20U);
  } else if (action.kind == Kind::nan && count > 0) {
    values[count / 2] = std::numeric_limits<float>::quiet_NaN();
  } else if (action.kind == Kind::scale) {
    std::for_each(values, values + count,
                  [&](float& value) { value = static_cast<float>(value * action.factor); });
  }
}

// Returns half of the bytes in whole pages, as direct I/O requires. A single page can't be
// shortened; of less, one byte remains.
std::int64_t shortened(std::int64_t bytes) {
  constexpr std::int64_t kPage = 4096;
  const std::int64_t pages = bytes / 2 / kPage * kPage;
  return pages > 0 ? pages : bytes % kPage == 0 ? bytes : 1;
}

}  // namespace

void meet_fault(std::string_view site, void* data, std::int64_t bytes) {
  const FaultRule* const rule = next_fault(site);
  if (rule == nullptr) {
    return;
  }
  act(rule->action, site);
  if (rule->action.kind == Kind::error) {
    throw_errno(rule->action.number, "pass the fault point", site);
  }
  change(rule->action, data, bytes);
}

FaultyCall meet_faulty_call(std::string_view site, std::int64_t bytes) {
  const FaultRule* const rule = next_fault(site);
  if (rule == nullptr) {
    return {0, bytes};
  }
  act(rule->action, site);
  if (rule->action.kind == Kind::error) {
    return {rule->action.number, 0};
  }
  return {0, rule->action.kind == Kind::shorten ? shortened(bytes) : bytes};
}

FaultsPaused::FaultsPaused() { ++pauses; }
FaultsPaused::~FaultsPaused() { --pauses; }

void watch_faults(std::function<void(std::string_view)> act) {
  plan().rules.clear();
  plan().watch = std::move(act);
  fault_detail::armed = plan().watch != nullptr;
}

void arm_faults(const std::vector<FaultRule>& rules, int rank, int attempt) {
  Plan& now = plan();
  now.rank = rank;
  now.watch = nullptr;
  now.rules.clear();
  for (const FaultRule& rule : rules) {
    const bool is_ours =
        (rule.rank < 0 || rule.rank == rank) && (rule.attempt == 0 || rule.attempt == attempt);
    if (is_ours) {
      now.rules.push_back(std::make_unique<LiveRule>(rule));
      say(fmt::format("trireme: rank {}: a fault is planned: {}\n", rank, to_text(rule)));
    }
  }
  fault_detail::armed = !now.rules.empty();
}

}  // namespace trireme
