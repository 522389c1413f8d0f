#include "src/plan/simulate/simulated_job.h"

#include <algorithm>
#include <cmath>

namespace trireme {

SimulatedJob::SimulatedJob(const JobModel& model, const JobFaults& faults)
    : model_(model),
      feed_(faults),
      nodes_(model.nodes, model.spares),
      saves_(model.nodes, model.checkpoint.partner ? model.group_nodes : 0),
      stragglers_(model.straggler),
      memory_interval_(static_cast<double>(model.memory_interval())),
      disk_interval_(static_cast<double>(model.disk_interval())),
      end_(model.days * 24 * kHour),
      last_step_(model.steps > 0 ? model.steps : kForever) {
  maintenance_at_ = next_maintenance();
}

SimulatedRun SimulatedJob::run() {
  bring_up(true, nullptr);
  while (!is_over()) {
    train_until(std::min({end_, fault_time(), pause_time()}));
    if (is_over()) {
      break;
    }
    if (fault_time() <= now_ || feed_.next_step() <= step_) {
      const JobFault fault = take_fault();
      hits(fault) ? recover(fault) : note(fault, now_);
    } else {
      pause();
    }
  }
  if (step_ >= last_step_) {
    save_at_end();
  }
  run_.wall = now_;
  run_.steps = reached_;
  run_.is_finished = step_ >= last_step_;
  return run_;
}

void SimulatedJob::spend(SimulatedCause cause, double seconds) {
  seconds = std::clamp(seconds, 0.0, end_ - now_);
  run_.seconds[static_cast<std::size_t>(cause)] += seconds;
  now_ = seconds >= end_ - now_ ? end_ : now_ + seconds;
}

double SimulatedJob::next_save(double interval) const {
  return interval > 0 ? (std::floor(step_ / interval) + 1) * interval : kForever;
}

double SimulatedJob::slowdown() const {
  const double missing = static_cast<double>(model_.nodes) / static_cast<double>(nodes_.active());
  return missing * stragglers_.slowdown();
}

void SimulatedJob::train_until(double until) {
  const double seconds = model_.step_seconds * slowdown();
  while (now_ < until) {
    const double target = std::min({next_memory_, next_disk_, last_step_, feed_.next_step()});
    const double reached_at = now_ + (target - step_) * seconds;
    if (!(reached_at <= until)) {
      return advance(step_ + (until - now_) / seconds, seconds, until);
    }
    advance(target, seconds, reached_at);
    if (is_over() || feed_.next_step() <= step_ || !save(until)) {
      return;
    }
  }
}

void SimulatedJob::advance(double step, double seconds, double until) {
  const double again = std::max(0.0, std::min(step, reached_) - step_);
  const double first = std::max(0.0, step - std::max(step_, reached_));
  spend(SimulatedCause::redone, again * seconds);
  spend(SimulatedCause::train, first * model_.step_seconds);
  spend(SimulatedCause::slow, first * (seconds - model_.step_seconds));
  now_ = until;  // without rounding errors
  step_ = step;
  reached_ = std::max(reached_, step);
}

bool SimulatedJob::save(double until) {
  const bool is_disk = step_ >= next_disk_;
  const double busy = is_disk ? std::max(0.0, saves_.disk_busy_until() - now_) : 0;
  const double stall = busy + model_.checkpoint.stall;
  if (now_ + stall > until) {
    spend(SimulatedCause::checkpoint, until - now_);
    return false;
  }
  spend(SimulatedCause::checkpoint, stall);
  if (step_ >= next_memory_) {
    saves_.save_in_memory(step_, now_ + model_.checkpoint.memory_seconds);
    next_memory_ += memory_interval_;
  }
  if (is_disk) {
    saves_.save_on_disk(step_, now_ + model_.checkpoint.disk_seconds);
    next_disk_ += disk_interval_;
  }
  return true;
}

double SimulatedJob::next_maintenance() const {
  const double every = model_.maintenance.every_days * 24 * kHour;
  return every > 0 ? (std::floor(now_ / every) + 1) * every : kForever;
}

double SimulatedJob::pause_time() const {
  return std::min({maintenance_at_, limit_at_, stragglers_.next_event()});
}

void SimulatedJob::pause() {
  if (maintenance_at_ <= now_) {
    stop(SimulatedCause::maintenance, kHour * model_.maintenance.hours);
    maintenance_at_ = next_maintenance();
  } else if (limit_at_ <= now_) {
    stop(SimulatedCause::wait, kHour * model_.queue.wait_hours);
  } else {
    stragglers_.end_recovered(now_);
    replace_straggler();
  }
}

void SimulatedJob::replace_straggler() {
  const std::optional<std::int64_t> node = stragglers_.noticed(now_);
  if (!node) {
    return;
  }
  nodes_.end_repairs(now_);
  if (!nodes_.has_spare()) {
    return stragglers_.tolerate(*node);
  }
  const bool to_memory = memory_interval_ > 0 && model_.checkpoint.partner && model_.nodes > 1;
  const JobModel::Checkpoint& checkpoint = model_.checkpoint;
  spend(SimulatedCause::checkpoint,
        checkpoint.stall + (to_memory ? checkpoint.memory_seconds : checkpoint.disk_seconds));
  to_memory ? saves_.save_in_memory(step_, now_) : saves_.save_on_disk(step_, now_);
  feed_.end_attempt();
  lose(*node, now_ + kHour * model_.times.repair_hours);
  spend(SimulatedCause::exclude, model_.times.exclude);
  bring_up(false, nullptr);
}

}  // namespace trireme
