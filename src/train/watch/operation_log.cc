#include "src/train/watch/operation_log.h"

#include <algorithm>
#include <utility>

namespace trireme {

void OperationLog::start() {
  recorder_.want_precise_times(true);
  const std::vector<FlightEntry> before = recorder_.entries();
  seen_ = before.empty() ? 0 : before.back().ticket;
}

void OperationLog::keep(const FlightEntry& entry) {
  if (entry.ended_ns == 0) {
    under_way_.push_back(entry.ticket);
  } else if (ended_.size() < most_) {
    ended_.push_back(entry);
  } else {
    ++dropped_;
  }
}

void OperationLog::collect() {
  for (const FlightTicket ticket : std::exchange(under_way_, {})) {
    if (const auto entry = recorder_.read(ticket)) {
      keep(*entry);
    } else {
      ++dropped_;
    }
  }
  for (const FlightEntry& entry : recorder_.entries(seen_)) {
    dropped_ += static_cast<std::int64_t>(entry.ticket - seen_) - 1;
    seen_ = entry.ticket;
    keep(entry);
  }
}

// An operation that began before start() may have been timed by a coarse clock. Make sure that it
// does not end before it starts.
std::vector<TraceOperation> OperationLog::operations() {
  names_ = recorder_.group_names();
  std::vector<TraceOperation> operations;
  for (const FlightEntry& entry : ended_) {
    const std::int64_t start = entry.started_ns == 0 ? entry.queued_ns : entry.started_ns;
    operations.push_back({names_[entry.group], name_of(entry.label.kind), entry.label.number,
                          entry.label.bytes, entry.queued_ns, start,
                          std::max(start, entry.ended_ns)});
  }
  return operations;
}

}  // namespace trireme
