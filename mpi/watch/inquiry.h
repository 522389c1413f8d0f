// Inquiry asks all ranks of the world what they are doing, even while the communicators hang. Over
// MPI, each rank answers on a thread and a communicator of its own; a thread world reads its
// recorders directly. Owned by the owner of the recorder. May be called by any number of threads at
// once.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "mpi/watch/flight_report.h"

namespace trireme {

class Inquiry {
 public:
  virtual ~Inquiry() = default;
  // Returns one answer per rank of the world, including this one; an answer is empty if the rank
  // gave none within `patience`. Every rank that is asked dumps its recorder. Returns as soon as
  // all have answered.
  virtual std::vector<std::optional<FlightReport>> ask(const FlightQuestion& question,
                                                       std::chrono::milliseconds patience) = 0;
};

}  // namespace trireme
