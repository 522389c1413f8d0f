#include "src/device/sim/fault.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "src/device/sim/environment.h"

namespace sim {
namespace {

struct PlannedFault {
  std::string call;  // or a rank
  std::uint64_t number = 0;
  std::string error;  // or "hang" or "error" of a rank
  Fault fault = {};
  std::uint64_t calls = 0;
};

struct FaultPlan {
  std::mutex mutex;
  std::vector<PlannedFault> planned;
  FaultPlan();
  void set(const std::string& faults);
};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char one : text) {
    if (one == separator) {
      parts.emplace_back();
    } else {
      parts.back() += one;
    }
  }
  return parts;
}

bool parse(const std::string& text, PlannedFault& to) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 3 || parts.size() > 4 || (parts.size() == 4 && parts[3] != "later")) {
    return false;
  }
  to.call = parts[0];
  const char* end = parts[1].data() + parts[1].size();
  if (std::from_chars(parts[1].data(), end, to.number).ptr != end || parts[1].empty()) {
    return false;
  }
  to.error = parts[2];
  if (to.error == "hang" || to.error == "error") {
    return parts.size() == 3;
  }
  if (to.error == "wrong") {
    to.fault.wrong = true;
    return parts.size() == 3;
  }
  const std::optional<int> value = error_value(to.error);
  to.fault = {value.value_or(0), parts.size() == 4};
  return value.has_value();
}

FaultPlan::FaultPlan() { set(environment().faults); }

void FaultPlan::set(const std::string& faults) {
  planned.clear();
  if (faults.empty()) {
    return;
  }
  for (const std::string& text : split(faults, ',')) {
    PlannedFault one;
    if (!parse(text, one)) {
      std::fprintf(
          stderr,
          "simulated device: TRIREME_SIM_FAULT: cannot read '%s': expected CALL:NUMBER:ERROR, "
          "CALL:NUMBER:ERROR:later, CALL:NUMBER:wrong, RANK:NUMBER:hang or RANK:NUMBER:error\n",
          text.c_str());
      std::_Exit(2);
    }
    planned.push_back(one);
  }
}

FaultPlan& plan() {
  static FaultPlan& made = *new FaultPlan;
  return made;
}

// A wrong variable ends the process before it has done anything.
[[maybe_unused]] FaultPlan& read_at_the_start = plan();

}  // namespace

Fault take_fault(std::string_view call) {
  FaultPlan& all = plan();
  const std::lock_guard lock(all.mutex);
  Fault found;
  for (PlannedFault& one : all.planned) {
    if (one.call == call && ++one.calls == one.number) {
      found = one.fault;
    }
  }
  return found;
}

RankFault rank_fault(int rank, std::uint64_t operation) {
  FaultPlan& all = plan();
  const std::lock_guard lock(all.mutex);
  for (const PlannedFault& one : all.planned) {
    if (one.call == std::to_string(rank) && one.number == operation) {
      return one.error == "hang" ? RankFault::hang : RankFault::error;
    }
  }
  return RankFault::none;
}

void set_faults(const std::string& faults) {
  FaultPlan& all = plan();
  const std::lock_guard lock(all.mutex);
  all.set(faults);
}

}  // namespace sim
