// The steady clocks of all ranks as one: how far rank 0's is ahead of this rank's, from messages
// there and back. The answer was given between the question's leaving and its own arrival: it tells
// the time in the middle of the round trip, to half of it (Cristian, Probabilistic clock
// synchronization, 1989); of several rounds the shortest counts.
#pragma once

#include <cstdint>

#include "mpi/communicator.h"

namespace trireme {

struct ClockReading {
  std::int64_t local_ns = 0;        // when it was taken, by this rank's clock
  std::int64_t offset_ns = 0;       // rank 0's clock less this rank's
  std::int64_t uncertainty_ns = 0;  // of the offset, either way
};

// Collective; ranks take turns: some tens of microseconds each. All leave it together.
ClockReading read_clock(Communicator& world);

// Rank 0's time, from this rank's between two readings. Two offsets that differ by no more than
// their uncertainties are one; others say that the clocks run apart, and are joined by a line.
class SharedClock {
 public:
  SharedClock(const ClockReading& first, const ClockReading& last);

  std::int64_t at(std::int64_t local_ns) const;
  std::int64_t offset_ns() const { return first_.offset_ns; }
  std::int64_t uncertainty_ns() const { return uncertainty_ns_; }
  // By how much more the clocks were apart at the last reading; 0: not measurably.
  std::int64_t drift_ns() const { return drift_ns_; }

 private:
  ClockReading first_;
  std::int64_t uncertainty_ns_;
  std::int64_t drift_ns_ = 0;
  std::int64_t length_ns_;
};

}  // namespace trireme
