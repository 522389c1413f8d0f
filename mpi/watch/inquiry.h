// Inquiry: a way to ask all ranks of the world what they do that works while the communicators
// hang. Over MPI: a thread of each rank, on a communicator of its own; in a thread world: directly.
// Owned by who owns the recorder. Any thread, several at once.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "mpi/watch/flight_report.h"

namespace trireme {

class Inquiry {
 public:
  virtual ~Inquiry() = default;
  // One answer a rank of the world, this one's too; none from those that gave none within
  // `patience`. Every asked rank dumps its recorder. Returns early when all have answered.
  virtual std::vector<std::optional<FlightReport>> ask(const FlightQuestion& question,
                                                       std::chrono::milliseconds patience) = 0;
};

}  // namespace trireme
