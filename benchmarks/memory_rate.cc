#include "benchmarks/memory_rate.h"

#include <algorithm>

#include "benchmarks/stream_kernels.h"
#include "benchmarks/turns.h"
#include "src/base/median.h"

namespace trireme {
namespace {

constexpr std::int64_t kArrayBytes = std::int64_t{64} << 20;
constexpr std::int64_t kElements = kArrayBytes / 8;
constexpr int kRounds = 5;

double* elements(const Buffer& buffer) { return as<double>(buffer.view(DType::f64)); }

}  // namespace

MemoryRate::MemoryRate()
    : a_(pool_.allocate(kArrayBytes)),
      b_(pool_.allocate(kArrayBytes)),
      c_(pool_.allocate(kArrayBytes)) {
  for (const Buffer* buffer : {&a_, &b_, &c_}) {
    std::fill_n(elements(*buffer), kElements, 1.0);
  }
}

double MemoryRate::measure(Communicator& comm) {
  const StreamArrays arrays{elements(a_), elements(b_), elements(c_), kElements};
  const auto samples =
      take_turns(comm,
                 {[&] { run_stream(StreamKernel::triad, StreamStores::ordinary, arrays); },
                  [&] { run_stream(StreamKernel::triad, StreamStores::streaming, arrays); }},
                 {.warmup = 1, .iterations = kRounds, .aggregated = 1});
  const double seconds = std::min(median(samples[0].seconds), median(samples[1].seconds));
  return 3.0 * kArrayBytes / seconds;
}

}  // namespace trireme
