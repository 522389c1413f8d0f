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
  bool is_due = true;  // whether its attempt and rank are those of this process
};

struct FaultPlan {
  std::mutex mutex;
  std::vector<PlannedFault> planned;
  FaultPlan();
  void set(const std::string& faults);
};

int number_in(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::atoi(text);
}

// Returns the process's rank in the job, as its launcher has numbered it.
int world_rank() {
  return number_in("OMPI_COMM_WORLD_RANK", number_in("PMIX_RANK", number_in("SLURM_PROCID", 0)));
}

// Takes the condition "@ATTEMPT/RANK" off the end of `who`. Returns whether it is met, or nothing
// if it cannot be read.
std::optional<bool> take_condition(std::string& who) {
  const std::size_t at = who.find('@');
  if (at == std::string::npos) {
    return true;
  }
  const std::vector<std::string> numbers = split(who.substr(at + 1), '/');
  who.resize(at);
  bool is_met = numbers.size() <= 2;
  for (std::size_t i = 0; i < numbers.size() && i < 2; ++i) {
    int number = 0;
    const char* const end = numbers[i].data() + numbers[i].size();
    if (numbers[i].empty() || std::from_chars(numbers[i].data(), end, number).ptr != end) {
      return std::nullopt;
    }
    is_met = is_met && number == (i == 0 ? number_in("TRIREME_GENERATION", 1) : world_rank());
  }
  return numbers.size() > 2 ? std::nullopt : std::optional(is_met);
}

bool parse(const std::string& text, PlannedFault& to) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() < 3 || parts.size() > 4 || (parts.size() == 4 && parts[3] != "later")) {
    return false;
  }
  to.call = parts[0];
  const std::optional<bool> is_due = take_condition(to.call);
  if (!is_due) {
    return false;
  }
  to.is_due = *is_due;
  const char* end = parts[1].data() + parts[1].size();
  if (std::from_chars(parts[1].data(), end, to.number).ptr != end || parts[1].empty()) {
    return false;
  }
  to.error = parts[2];
  if (to.error == "hang" || to.error == "error") {
    return parts.size() == 3;
  }
  if (to.error == "wrong" || to.error == "other") {
    to.fault.wrong = to.error == "wrong";
    to.fault.other = to.error == "other";
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
      refuse_variable("TRIREME_SIM_FAULT: cannot read '" + text +
                      "': expected CALL:NUMBER:ERROR, CALL:NUMBER:ERROR:later, "
                      "CALL:NUMBER:wrong, CALL:NUMBER:other, RANK:NUMBER:hang or "
                      "RANK:NUMBER:error");
    }
    if (one.is_due) {
      planned.push_back(one);
    }
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
