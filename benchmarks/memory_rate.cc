#include "benchmarks/memory_rate.h"

#include <algorithm>

#include <emmintrin.h>

#include "benchmarks/report.h"
#include "benchmarks/turns.h"

namespace trireme {
namespace {

constexpr std::int64_t kArrayBytes = std::int64_t{64} << 20;
constexpr std::int64_t kElements = kArrayBytes / 8;
constexpr int kRounds = 5;
constexpr double kScale = 0.5;

// Computes a = b + kScale c. All arrays are [kElements].
void triad(double* a, const double* b, const double* c) {
  for (std::int64_t i = 0; i < kElements; ++i) {
    a[i] = b[i] + kScale * c[i];
  }
}

// Does the same with stores that bypass the caches. They need aligned memory, which a pool
// provides.
void streaming_triad(double* a, const double* b, const double* c) {
  const __m128d scale = _mm_set1_pd(kScale);
  for (std::int64_t i = 0; i < kElements; i += 2) {
    const __m128d product = _mm_mul_pd(scale, _mm_load_pd(c + i));
    _mm_stream_pd(a + i, _mm_add_pd(_mm_load_pd(b + i), product));
  }
  _mm_sfence();
}

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
  const auto samples =
      take_turns(comm,
                 {[this] { triad(elements(a_), elements(b_), elements(c_)); },
                  [this] { streaming_triad(elements(a_), elements(b_), elements(c_)); }},
                 {.warmup = 1, .iterations = kRounds, .aggregated = 1});
  const double seconds = std::min(median(samples[0].seconds), median(samples[1].seconds));
  return 3.0 * kArrayBytes / seconds;
}

}  // namespace trireme
