#include "benchmarks/io/io_phase.h"

#include <algorithm>
#include <chrono>

#include "benchmarks/sampling.h"

namespace trireme {
namespace {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

IoClock::IoClock(MpiSession& session) {
  Communicator& world = session.world();
  const auto& places = session.places();
  const bool one_host = std::all_of(places.begin(), places.end(), [&](const RankPlace& place) {
    return place.host == places.front().host;
  });
  // The first barrier wakes ranks that are asleep.
  world.barrier().wait();
  const double now = gather_by_rank(world, {monotonic_seconds()}).front().front();
  world.barrier().wait();
  origin_ = one_host ? now : monotonic_seconds();
}

double IoClock::seconds() const { return monotonic_seconds() - origin_; }

double duration_of(const IoSpan& span, Communicator& comm) {
  return all_reduce_value(comm, span.end, ReduceOp::max) -
         all_reduce_value(comm, span.begin, ReduceOp::min);
}

}  // namespace trireme
