// GroupWatch records one communicator's operations in its rank's flight recorder, and finds out why
// an operation is overdue. Owned by the communicator; called by whichever thread drives its queue.
#pragma once

#include <string>
#include <vector>

#include "mpi/group_members.h"
#include "mpi/watch/flight_recorder.h"
#include "mpi/watch/inquiry.h"

namespace trireme {

// A Watch holds what a communicator needs to be watched; both objects outlive it. A communicator
// without a recorder is not watched.
struct Watch {
  FlightRecorder* recorder = nullptr;
  Inquiry* inquiry = nullptr;
  std::uint64_t group = 0;  // id of the group, the same on all its ranks; 0 for a world
};

class GroupWatch {
 public:
  // Limits the time that the other ranks have to answer.
  static constexpr std::chrono::seconds kPatience{3};

  // Precondition: watch.recorder is not null.
  GroupWatch(const Watch& watch, const std::string& name, GroupMembers members);
  ~GroupWatch() { watch_.recorder->group_ended(group_); }
  GroupWatch(const GroupWatch&) = delete;
  GroupWatch& operator=(const GroupWatch&) = delete;

  // Returns the Watch for the group of the ranks that chose this color in the next split. Every
  // rank calls it once per split.
  Watch next_split(int color);

  bool wants_precise_times() const { return watch_.recorder->wants_precise_times(); }
  FlightTicket queued(const OperationLabel& label, FlightRecorder::Clock::time_point now) {
    return watch_.recorder->queued(group_, label, now);
  }
  void started(FlightTicket ticket, FlightRecorder::Clock::time_point now) {
    watch_.recorder->started(ticket, now);
  }
  void ended(FlightTicket ticket, const OperationLabel& label, bool failed,
             FlightRecorder::Clock::time_point now) {
    watch_.recorder->ended(ticket, group_, label, failed, now);
  }

  // Returns whether another rank has waited for this operation beyond its deadline.
  bool is_overdue_elsewhere(const OperationLabel& label) const {
    return is_collective(label.kind) &&
           group_.alarm.load(std::memory_order_relaxed) == label.number;
  }
  // Returns the rank in the world that reported the operation as overdue.
  int alarmed_by() const { return group_.alarmed_by.load(); }
  // Dumps the recorder, asks all ranks, and describes which ranks are responsible for an overdue
  // operation and what they are doing. Takes up to kPatience plus a second for the dump.
  std::string find_culprits(const OperationLabel& label);

 private:
  Watch watch_;
  GroupMembers members_;
  FlightGroup& group_;
  std::uint64_t splits_ = 0;
};

// Composes the text of find_culprits(). answers[r] is that of rank r in the world; `name` is the
// group's name and ranks.
std::string blame(const OperationLabel& label, const std::string& name, const GroupMembers& members,
                  const std::vector<std::optional<FlightReport>>& answers);

}  // namespace trireme
