// Defines the kernels of dropout. Four adjacent elements of a sample share one call of Philox,
// which takes longer than their way to memory and back unless all else is cheap. Groups of eight
// elements that belong to one sample have a kernel of their own, without divisions and conversions.
#include <cmath>
#include <cstring>

#include "src/base/philox.h"
#include "src/kernels/cuda/each.h"
#include "src/kernels/cuda/entries.h"

namespace trireme::cuda {
namespace {

constexpr int kDropThreads = 256;
constexpr int kDropCount = 8;  // adjacent elements of a thread

// The keys of Philox's rounds. Read as constants, they need no instructions of their own.
struct RoundKeys {
  std::uint32_t low[10];
  std::uint32_t high[10];
};

RoundKeys round_keys(PhiloxKey key) {
  RoundKeys keys{};
  for (int round = 0; round < 10; ++round) {
    keys.low[round] = key[0];
    keys.high[round] = key[1];
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return keys;
}

// Returns philox(counter, key) with the keys of the rounds.
__device__ PhiloxCounter philox_of(PhiloxCounter counter, const RoundKeys& keys) {
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ keys.low[round],
               static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ keys.high[round],
               static_cast<std::uint32_t>(a)};
  }
  return counter;
}

// As in Drop below.
template <class T>
struct GroupDrop {
  T* y;
  const T* x;
  std::int64_t count;
  std::int64_t first_element;
  std::int64_t per_sample;
  std::int64_t touched;  // the first sample that has elements here
  std::uint32_t first_sample;
  std::uint32_t step;
  const std::uint32_t* position;
  RoundKeys keys;
  std::uint32_t site;
  std::uint32_t least;  // words below it drop their elements
  float scale;
};

// The same as store<true>, of which nvcc 13.0 makes four stores of 4 bytes here. The result is too
// large to stay in a cache until it is read.
template <class T>
__device__ void store_words(T* to, const Floats<kDropCount>& x) {
  Chunk<T, kDropCount> chunk;
#pragma unroll
  for (int j = 0; j < kDropCount; ++j) {
    chunk.x[j] = narrow<T>(x.x[j]);
  }
  uint4 words[sizeof chunk / sizeof(uint4)];
  std::memcpy(words, &chunk, sizeof chunk);
#pragma unroll
  for (std::size_t n = 0; n < sizeof chunk / sizeof(uint4); ++n) {
    __stcs(reinterpret_cast<uint4*>(to) + n, words[n]);
  }
}

// Block (x, y) takes kDropThreads groups of the sample touched + y. first_element, per_sample and
// count are multiples of kDropCount, and all groups are aligned to 16 bytes.
template <class T>
__global__ void __launch_bounds__(kDropThreads) drop_kernel(const GroupDrop<T> p) {
  const std::int64_t sample = p.touched + blockIdx.y;
  const std::int64_t element =
      (static_cast<std::int64_t>(blockIdx.x) * kDropThreads + threadIdx.x) * kDropCount;
  const std::int64_t i = sample * p.per_sample - p.first_element + element;
  if (element >= p.per_sample || i < 0 || i >= p.count) {
    return;
  }
  auto a = load<kDropCount, true>(p.x + i, kDropCount);
  const std::uint32_t step = p.position == nullptr ? p.step : p.position[0];
  const std::uint32_t from = p.position == nullptr ? p.first_sample : p.position[1];
  const auto quad = static_cast<std::uint32_t>(element / 4);
#pragma unroll
  for (unsigned q = 0; q < kDropCount / 4; ++q) {
    const PhiloxCounter words =
        philox_of({p.site, step, from + static_cast<std::uint32_t>(sample), quad + q}, p.keys);
#pragma unroll
    for (unsigned j = 0; j < 4; ++j) {
      float& x = a.x[4 * q + j];
      x = words[j] >= p.least ? x * p.scale : 0.0F;
    }
  }
  store_words(p.y + i, a);
}

// Element i of x is element first_element + i of the samples.
template <class T>
struct Drop {
  static constexpr int kCount = kPerAccess<T>;
  T* y;
  const T* x;
  std::int64_t count;
  std::int64_t first_element;
  std::int64_t per_sample;
  std::uint32_t first_sample;
  std::uint32_t step;
  const std::uint32_t* position;  // replaces the two above, unless it is null
  std::uint64_t seed;
  std::uint32_t site;
  float probability;
  float scale;
  bool wide;

  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    auto a = load<kCount, kWide>(x + i, count - i);
    std::int64_t sample = (first_element + i) / per_sample;
    std::int64_t element = (first_element + i) % per_sample;
    const std::uint32_t present_step = position == nullptr ? step : position[0];
    const std::uint32_t from_sample = position == nullptr ? first_sample : position[1];
    PhiloxCounter words{};
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      const auto word = static_cast<unsigned>(element % 4);
      if (j == 0 || word == 0) {
        words = philox({site, present_step, from_sample + static_cast<std::uint32_t>(sample),
                        static_cast<std::uint32_t>(element / 4)},
                       philox_key(seed));
      }
      // Written out, because an index known only at run time would move the words to memory.
      const std::uint32_t low = word == 0 ? words[0] : words[1];
      const std::uint32_t high = word == 2 ? words[2] : words[3];
      const bool kept = uniform_float(word < 2 ? low : high) >= probability;
      a.x[j] = kept ? a.x[j] * scale : 0.0F;
      ++element;
      if (element == per_sample) {
        element = 0;
        ++sample;
      }
    }
    store<kWide>(y + i, a, count - i);
  }
};

// Runs drop_kernel if it can take the call, and returns whether it can.
template <class T>
bool drop_groups(Stream& stream, const Dropout& p) {
  const std::int64_t count = p.x.count;
  const bool whole = (p.first_element | p.elements_per_sample | count) % kDropCount == 0 &&
                     aligned({p.y.data, p.x.data});
  if (!whole || !(p.probability < 1) || count == 0) {
    return false;
  }
  const std::int64_t touched = p.first_element / p.elements_per_sample;
  const std::int64_t samples = (p.first_element + count - 1) / p.elements_per_sample + 1 - touched;
  constexpr std::int64_t kMostSamples = 65535;  // blocks of a grid in y
  if (samples > kMostSamples) {
    return false;
  }
  // A word is kept if its upper 24 bits, as a fraction, are not below the probability.
  const auto least = static_cast<std::uint32_t>(std::ceil(std::ldexp(p.probability, 24))) << 8;
  launch(kernel_of<drop_kernel<T>>,
         dim3(blocks_of(p.elements_per_sample, kDropCount * kDropThreads),
              static_cast<unsigned>(samples)),
         dim3(kDropThreads), 0, cuda_stream(stream),
         GroupDrop<T>{.y = device_pointer<T>(p.y),
                      .x = device_pointer<T>(p.x),
                      .count = count,
                      .first_element = p.first_element,
                      .per_sample = p.elements_per_sample,
                      .touched = touched,
                      .first_sample = static_cast<std::uint32_t>(p.first_sample),
                      .step = p.step,
                      .position = p.position,
                      .keys = round_keys(philox_key(p.seed)),
                      .site = p.site,
                      .least = least,
                      .scale = 1 / (1 - p.probability)});
  return true;
}

}  // namespace

void dropout(Stream& stream, const Dropout& p) {
  by_type(p.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (drop_groups<T>(stream, p)) {
      return;
    }
    each(stream, Drop<T>{.y = device_pointer<T>(p.y),
                         .x = device_pointer<T>(p.x),
                         .count = p.x.count,
                         .first_element = p.first_element,
                         .per_sample = p.elements_per_sample,
                         .first_sample = static_cast<std::uint32_t>(p.first_sample),
                         .step = p.step,
                         .position = p.position,
                         .seed = p.seed,
                         .site = p.site,
                         .probability = p.probability,
                         .scale = 1 / (1 - p.probability),
                         .wide = aligned({p.y.data, p.x.data})});
  });
}

}  // namespace trireme::cuda
