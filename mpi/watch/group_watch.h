// GroupWatch: one communicator's share in its rank's flight recorder, and who finds out why an
// operation of it is overdue. Owned by the communicator; its queue's threads use it.
#pragma once

#include <string>
#include <vector>

#include "mpi/group_members.h"
#include "mpi/watch/flight_recorder.h"
#include "mpi/watch/inquiry.h"

namespace trireme {

// What a communicator is given to be watched; both outlive it. Without a recorder it is not.
struct Watch {
  FlightRecorder* recorder = nullptr;
  Inquiry* inquiry = nullptr;
  std::uint64_t group = 0;  // the group's id, the same on all its ranks; 0: a world
};

class GroupWatch {
 public:
  // How long the others may take to answer.
  static constexpr std::chrono::seconds kPatience{3};

  // watch.recorder is there.
  GroupWatch(const Watch& watch, const std::string& name, GroupMembers members);
  ~GroupWatch() { watch_.recorder->group_ended(group_); }
  GroupWatch(const GroupWatch&) = delete;
  GroupWatch& operator=(const GroupWatch&) = delete;

  // For the group of those that chose this colour in the next split. Once a split, on every rank.
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

  // Whether another rank has waited for this operation beyond its deadline.
  bool is_overdue_elsewhere(const OperationLabel& label) const {
    return is_collective(label.kind) &&
           group_.alarm.load(std::memory_order_relaxed) == label.number;
  }
  // The rank of the world that said so.
  int alarmed_by() const { return group_.alarmed_by.load(); }
  // Dumps, asks all ranks, and says who is to blame for an overdue operation and where they are.
  // Takes as long as kPatience and a second for the dump.
  std::string find_culprits(const OperationLabel& label);

 private:
  Watch watch_;
  GroupMembers members_;
  FlightGroup& group_;
  std::uint64_t splits_ = 0;
};

// The words of find_culprits(). `answers` by rank of the world; `name`: the group's, with ranks.
std::string blame(const OperationLabel& label, const std::string& name, const GroupMembers& members,
                  const std::vector<std::optional<FlightReport>>& answers);

}  // namespace trireme
