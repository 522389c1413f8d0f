#include "src/train/saving/saving_policy.h"

#include <array>

#include "src/base/median.h"

namespace trireme {
namespace {

// An estimate for a job on some dozens of nodes; checkpoint.mtbf overrides it.
constexpr double kDefaultMtbfHours = 24;
constexpr std::size_t kStepTimes = 33;

}  // namespace

SavingPolicy::SavingPolicy(const RunConfig& config, Communicator& world, const SaveReport& report,
                           double mtbf_hours)
    : config_(config),
      world_(world),
      report_(report),
      mtbf_hours_(config.checkpoint.mtbf > 0 ? config.checkpoint.mtbf
                  : mtbf_hours > 0           ? mtbf_hours
                                             : kDefaultMtbfHours),
      disk_(config.checkpoint.every),
      memory_(config.checkpoint.memory_every) {}

void SavingPolicy::start(std::int64_t step, bool on_disk, bool in_memory) {
  on_disk_ = on_disk ? step : on_disk_;
  in_memory_ = in_memory ? step : in_memory_;
  disk_.start(step);
  memory_.start(step);
}

bool SavingPolicy::disk_due(std::int64_t step) const {
  return step == config_.train.steps || disk_.due(step);
}

void SavingPolicy::disk_saves(std::int64_t step) {
  on_disk_ = step;
  disk_.saved(step);
}

void SavingPolicy::memory_saves(std::int64_t step) {
  in_memory_ = step;
  memory_.saved(step);
}

void SavingPolicy::step_took(double seconds) {
  if (step_times_.size() < kStepTimes) {
    step_times_.push_back(seconds);
  } else {
    step_times_[next_step_time_++ % kStepTimes] = seconds;
  }
}

void SavingPolicy::learn_disk(double cost, double least) {
  learn(disk_, "checkpoint.every", cost, least);
}

void SavingPolicy::learn_memory(double cost, double least) {
  learn(memory_, "checkpoint.memory_every", cost, least);
}

// All ranks use the maxima over all ranks.
void SavingPolicy::learn(SaveSchedule& schedule, const char* key, double cost, double least) {
  if (!schedule.is_auto()) {
    return;
  }
  std::array<double, 4> most = {cost, least, median(step_times_), mtbf_hours_};
  world_.all_reduce({most.data(), most.size(), DType::f64}, ReduceOp::max).wait();
  const SaveFigures figures{most[0], most[1], most[2], 3600 * most[3]};
  if (const auto text = schedule.learn(figures)) {
    report_.interval(key, *text, schedule.interval(), figures);
  }
}

}  // namespace trireme
