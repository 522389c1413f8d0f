#include "src/train/watch/shared_clock.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "src/trace/span_log.h"

namespace trireme {
namespace {

constexpr int kRounds = 16;
constexpr int kTag = 0;

View view_of(std::int64_t& value) { return {&value, 1, DType::i64}; }

// Answers one rank's requests; runs on rank 0.
void answer(Communicator& world, int rank) {
  for (int round = 0; round < kRounds; ++round) {
    std::int64_t time = 0;
    world.recv(view_of(time), rank, kTag).wait();
    time = steady_nanoseconds();
    world.send(view_of(time), rank, kTag).wait();
  }
}

ClockReading ask(Communicator& world) {
  ClockReading best{0, 0, std::numeric_limits<std::int64_t>::max()};
  for (int round = 0; round < kRounds; ++round) {
    std::int64_t time = 0;
    const std::int64_t asked = steady_nanoseconds();
    world.send(view_of(time), 0, kTag).wait();
    world.recv(view_of(time), 0, kTag).wait();
    const std::int64_t half = (steady_nanoseconds() - asked + 1) / 2;
    if (half < best.uncertainty_ns) {
      best = {asked + half, time - (asked + half), half};
    }
  }
  return best;
}

}  // namespace

ClockReading read_clock(Communicator& world) {
  ClockReading reading{steady_nanoseconds(), 0, 0};
  if (world.rank() > 0) {
    reading = ask(world);
  }
  for (int rank = 1; world.rank() == 0 && rank < world.size(); ++rank) {
    answer(world, rank);
  }
  world.barrier().wait();
  return reading;
}

SharedClock::SharedClock(const ClockReading& first, const ClockReading& last)
    : first_(first), length_ns_(std::max<std::int64_t>(last.local_ns - first.local_ns, 1)) {
  const std::int64_t apart = last.offset_ns - first.offset_ns;
  if (std::abs(apart) > first.uncertainty_ns + last.uncertainty_ns) {
    drift_ns_ = apart;
    uncertainty_ns_ = std::max(first.uncertainty_ns, last.uncertainty_ns);
    return;
  }
  const ClockReading& better = first.uncertainty_ns <= last.uncertainty_ns ? first : last;
  first_.offset_ns = better.offset_ns;
  uncertainty_ns_ = better.uncertainty_ns;
}

std::int64_t SharedClock::at(std::int64_t local_ns) const {
  const double share =
      static_cast<double>(local_ns - first_.local_ns) / static_cast<double>(length_ns_);
  return local_ns + first_.offset_ns + std::llround(share * static_cast<double>(drift_ns_));
}

}  // namespace trireme
