// Converts this rank's steady clock to rank 0's, using messages to rank 0 and back. Rank 0 reads
// its clock between the departure of the request and the arrival of the reply. Its time is assigned
// to the middle of the round trip, with an uncertainty of half of it (Cristian, Probabilistic clock
// synchronization, 1989). Of several rounds, the shortest is used.
#pragma once

#include <cstdint>

#include "mpi/communicator.h"

namespace trireme {

struct ClockReading {
  std::int64_t local_ns = 0;        // when it was taken, by this rank's clock
  std::int64_t offset_ns = 0;       // rank 0's clock minus this rank's
  std::int64_t uncertainty_ns = 0;  // largest error of the offset, in either direction
};

// Collective. Ranks take turns of some tens of microseconds each, and leave together.
ClockReading read_clock(Communicator& world);

// Converts this rank's time to rank 0's, given two readings. If the two offsets differ by no more
// than their uncertainties, the better one is used; otherwise the clocks drift, and the offset is
// interpolated linearly.
class SharedClock {
 public:
  SharedClock(const ClockReading& first, const ClockReading& last);

  std::int64_t at(std::int64_t local_ns) const;
  std::int64_t offset_ns() const { return first_.offset_ns; }
  std::int64_t uncertainty_ns() const { return uncertainty_ns_; }
  // Returns the change of the offset between the two readings, or 0 if it is not measurable.
  std::int64_t drift_ns() const { return drift_ns_; }

 private:
  ClockReading first_;
  std::int64_t uncertainty_ns_;
  std::int64_t drift_ns_ = 0;
  std::int64_t length_ns_;
};

}  // namespace trireme
