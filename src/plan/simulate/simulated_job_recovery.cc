#include <algorithm>

#include "src/plan/simulate/simulated_job.h"

namespace trireme {

JobFault SimulatedJob::take_fault() {
  JobFault fault = feed_.take();
  fault.node = fault.node == kAnyNode ? nodes_.any_active() : fault.node;
  return fault;
}

bool SimulatedJob::hits(const JobFault& fault) const {
  bool hit = fault.kind == JobFaultKind::site || fault.kind == JobFaultKind::stop;
  if (fault.kind == JobFaultKind::process || fault.kind == JobFaultKind::hang) {
    hit = nodes_.slot_of(fault.node).has_value();
  }
  each_lost_node(fault, [&](std::int64_t node) { hit |= nodes_.slot_of(node).has_value(); });
  return hit;
}

double SimulatedJob::time_of(const JobFault* fault, Spread which, double mean) const {
  return fault == nullptr ? mean : mean * time_factor(*fault, which, model_.times.spread);
}

void SimulatedJob::note(const JobFault& fault, double at) {
  const double back = at + kHour * time_of(&fault, repair_time, model_.times.repair_hours);
  each_lost_node(fault, [&](std::int64_t node) { lose(node, back); });
  if (fault.kind == JobFaultKind::straggler && nodes_.slot_of(fault.node)) {
    count(fault);
    stragglers_.begin(fault.node, at);
  } else if (fault.kind == JobFaultKind::site) {
    saves_.lose_memory();
    const double lost = kHour * time_of(&fault, site_time, model_.times.site_hours);
    const double detect =
        model_.times.detect[static_cast<std::size_t>(JobFaultKind::site)];  // then the pause begins
    site_until_ = std::max(site_until_, at + (fault.pause < 0 ? lost : detect + fault.pause));
  }
}

void SimulatedJob::lose(std::int64_t node, double back) {
  if (const auto slot = nodes_.lose(node, back)) {
    saves_.lose(*slot);
    stragglers_.remove(node);
  }
}

void SimulatedJob::recover(const JobFault& fault) {
  if (fault.kind == JobFaultKind::stop) {
    count(fault);
    return stop(SimulatedCause::wait, std::max(0.0, fault.pause));
  }
  fall(fault);
  bring_up(false, &fault);
}

void SimulatedJob::fall(const JobFault& fault) {
  count(fault);
  feed_.end_attempt();
  saves_.interrupt(now_);
  note(fault, now_);
  const auto kind = static_cast<std::size_t>(fault.kind);
  spend(SimulatedCause::detect, time_of(&fault, detect_time, model_.times.detect[kind]));
  if (fault.kind != JobFaultKind::site) {
    spend(SimulatedCause::exclude, time_of(&fault, exclude_time, model_.times.exclude));
  }
}

void SimulatedJob::stop(SimulatedCause cause, double seconds) {
  save_at_end();
  saves_.lose_memory();
  feed_.end_attempt();
  spend(cause, seconds);
  if (cause == SimulatedCause::wait) {
    leave_queue();
  }
  bring_up(true, nullptr);
}

void SimulatedJob::save_at_end() {
  spend(SimulatedCause::checkpoint, model_.checkpoint.stall + model_.checkpoint.disk_seconds);
  saves_.save_on_disk(step_, now_);
  spend(SimulatedCause::finish, model_.times.finish);
}

void SimulatedJob::bring_up(bool is_fresh, const JobFault* fault) {
  JobFault again;
  queue_until_ = kForever;
  while (now_ < end_) {
    absorb(true);
    if (now_ < site_until_) {
      spend(SimulatedCause::wait, site_until_ - now_);
      is_fresh = true;
      continue;
    }
    if (!has_nodes(is_fresh)) {
      continue;
    }
    const ResumePoint from = saves_.newest();
    const std::optional<JobFault> hit = launch(is_fresh, from, fault);
    if (!hit) {
      resume(from);
      return;
    }
    again = *hit;
    fault = &again;
    is_fresh = false;
    fall(again);
  }
}

void SimulatedJob::absorb(bool keeps_nodes) {
  while (fault_time() <= now_) {
    const double at = fault_time();
    const JobFault fault = take_fault();
    if (fault.kind == JobFaultKind::site ||
        (keeps_nodes && (fault.kind == JobFaultKind::group || fault.kind == JobFaultKind::node))) {
      if (hits(fault)) {
        count(fault);
      }
      note(fault, at);
    }
  }
}

void SimulatedJob::leave_queue() {
  absorb(false);
  nodes_.renew();
  stragglers_.clear();
  saves_.lose_memory();
}

bool SimulatedJob::has_nodes(bool& is_fresh) {
  nodes_.end_repairs(now_);
  const std::int64_t enough = model_.min_nodes > 0 ? model_.min_nodes : model_.nodes;
  (void)nodes_.fill();
  if (nodes_.active() >= enough) {
    return true;
  }
  if (queue_until_ == kForever) {
    ++run_.waits;
    queue_until_ = now_ + kHour * model_.queue.wait_hours;
  }
  if (queue_until_ <= nodes_.next_return()) {
    spend(SimulatedCause::wait, queue_until_ - now_);
    queue_until_ = kForever;
    leave_queue();
    is_fresh = true;
  } else {
    spend(SimulatedCause::wait, nodes_.next_return() - now_);
  }
  return false;
}

std::optional<JobFault> SimulatedJob::launch(bool is_fresh, const ResumePoint& from,
                                             const JobFault* fault) {
  ++run_.launches;
  feed_.begin_attempt(now_);
  if (is_fresh) {
    limit_at_ = model_.queue.limit_hours > 0 ? now_ + kHour * model_.queue.limit_hours : kForever;
  }
  const JobModel::Times& times = model_.times;
  const double load = from.place == SavePlace::memory ? times.load_memory
                      : from.place == SavePlace::disk ? times.load_disk
                                                      : 0;
  std::optional<JobFault> hit =
      is_fresh ? pass(SimulatedCause::start, times.start)
               : pass(SimulatedCause::relaunch, time_of(fault, relaunch_time, times.relaunch));
  return hit ? hit : pass(SimulatedCause::load, time_of(fault, load_time, load));
}

std::optional<JobFault> SimulatedJob::pass(SimulatedCause cause, double seconds) {
  const double until = std::min(now_ + seconds, end_);
  while (fault_time() < until) {
    spend(cause, fault_time() - now_);
    const JobFault fault = take_fault();
    if (hits(fault)) {
      return fault;
    }
    note(fault, now_);
  }
  spend(cause, until - now_);
  return std::nullopt;
}

void SimulatedJob::resume(const ResumePoint& from) {
  run_.from_memory += from.place == SavePlace::memory ? 1 : 0;
  run_.from_disk += from.place == SavePlace::disk ? 1 : 0;
  run_.from_nothing += from.place == SavePlace::nowhere ? 1 : 0;
  step_ = from.step;
  next_memory_ = next_save(memory_interval_);
  next_disk_ = next_save(disk_interval_);
}

}  // namespace trireme
