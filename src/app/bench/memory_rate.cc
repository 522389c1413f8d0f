#include "src/app/bench/memory_rate.h"

#include "src/app/bench/report.h"
#include "src/app/bench/turns.h"

namespace trireme {
namespace {

constexpr std::size_t kElements = (std::size_t{64} << 20) / sizeof(double);
constexpr int kRounds = 5;

void triad(double* a, const double* b, const double* c, std::size_t n, double scale) {
  for (std::size_t i = 0; i < n; ++i) {
    a[i] = b[i] + scale * c[i];
  }
}

}  // namespace

MemoryRate::MemoryRate() : a_(kElements, 1), b_(kElements, 2), c_(kElements, 3) {}

double MemoryRate::measure(Communicator& comm) {
  const auto once = [this] { triad(a_.data(), b_.data(), c_.data(), kElements, 0.5); };
  const auto samples =
      take_turns(comm, {once}, {.warmup = 1, .iterations = kRounds, .aggregated = 1});
  return 3.0 * sizeof(double) * kElements / median(samples[0].seconds);
}

}  // namespace trireme
