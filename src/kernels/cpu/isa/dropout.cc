#include "src/base/philox.h"
#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// Counters worked on at a time; each makes the words of four elements.
constexpr std::int64_t kCounters = 64;
constexpr std::int64_t kElements = 4 * kCounters;

// words[4 j + w] = word w of Philox at counter {site, step, sample, first + j}: philox.h with its
// loops turned inside out, so that the compiler makes vectors of the counters.
void make_words(const PhiloxCounter& start, PhiloxKey key, std::uint32_t* words) {
  std::uint32_t c[4][kCounters];
  for (std::uint32_t j = 0; j < kCounters; ++j) {
    c[0][j] = start[0];
    c[1][j] = start[1];
    c[2][j] = start[2];
    c[3][j] = start[3] + j;
  }
  for (int round = 0; round < 10; ++round) {
    for (int j = 0; j < kCounters; ++j) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c[0][j];
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c[2][j];
      c[0][j] = static_cast<std::uint32_t>(b >> 32) ^ c[1][j] ^ key[0];
      c[1][j] = static_cast<std::uint32_t>(b);
      c[2][j] = static_cast<std::uint32_t>(a >> 32) ^ c[3][j] ^ key[1];
      c[3][j] = static_cast<std::uint32_t>(a);
    }
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  for (int j = 0; j < kCounters; ++j) {
    for (int w = 0; w < 4; ++w) {
      words[4 * j + w] = c[w][j];
    }
  }
}

TRIREME_INLINE Words load_words(const std::uint32_t* p) {
  Words x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

}  // namespace

void dropout(Stream& stream, const Dropout& p) {
  const std::int64_t chunks = (p.elements_a_sample + kElements - 1) / kElements;
  // uniform_float(word) >= probability in whole numbers: word / 2^8 >= probability * 2^24.
  const auto least =
      static_cast<std::uint32_t>(__builtin_ceil(static_cast<double>(p.probability) * 0x1p24));
  const float scale = 1 / (1 - p.probability);
  by_type(p.x.dtype, [&]<class T>(T) {
    const auto drop = [&](std::int64_t sample, std::int64_t first) {
      // Of the chunk, what there is of it: elements [from, to).
      const std::int64_t left = p.elements_a_sample - first;
      const std::int64_t at = sample * p.elements_a_sample + first - p.first_element;
      const std::int64_t from = at < 0 ? -at : 0;
      std::int64_t to = left < kElements ? left : kElements;
      to = p.x.count - at < to ? p.x.count - at : to;
      if (from >= to) {
        return;
      }
      std::uint32_t words[kElements + kLanes];
      make_words({p.site, p.step, static_cast<std::uint32_t>(p.first_sample + sample),
                  static_cast<std::uint32_t>(first / 4)},
                 philox_key(p.seed), words);
      const T* x = as<T>(p.x) + at + from;
      T* y = as<T>(p.y) + at + from;
      const std::uint32_t* own = words + from;
      each_vector(to - from, [&](std::int64_t i, auto part) {
        const Floats scaled = load(x + i, part) * scale;
        store(y + i, (load_words(own + i) >> 8) >= least ? scaled : Floats{}, part);
      });
    };
    each_range(stream, p.batch * chunks, 1, 8 * p.batch * p.elements_a_sample,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   drop(i / chunks, i % chunks * kElements);
                 }
               });
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
