#include "src/kernels/cpu/isa/dropout_words.h"
#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// The number of counters handled at a time. Each one makes the words of four elements.
constexpr std::int64_t kCounters = 64;
constexpr std::int64_t kElements = 4 * kCounters;

}  // namespace

void dropout(Stream& stream, const Dropout& p) {
  const std::int64_t chunks = (p.elements_per_sample + kElements - 1) / kElements;
  const std::uint32_t least = least_kept(p.probability);
  const float scale = 1 / (1 - p.probability);
  const std::uint32_t step = p.position == nullptr ? p.step : p.position[0];
  const std::int64_t first_sample = p.position == nullptr ? p.first_sample : p.position[1];
  by_type(p.x.dtype, [&]<class T>(T) {
    const auto drop = [&](std::int64_t sample, std::int64_t first) {
      // The call holds elements [from, to) of this group of kElements.
      const std::int64_t left = p.elements_per_sample - first;
      const std::int64_t at = sample * p.elements_per_sample + first - p.first_element;
      const std::int64_t from = at < 0 ? -at : 0;
      std::int64_t to = left < kElements ? left : kElements;
      to = p.x.count - at < to ? p.x.count - at : to;
      if (from >= to) {
        return;
      }
      std::uint32_t words[kElements + kLanes];
      make_words<kCounters>({p.site, step, static_cast<std::uint32_t>(first_sample + sample),
                             static_cast<std::uint32_t>(first / 4)},
                            philox_key(p.seed), words);
      const T* x = as<T>(p.x) + at + from;
      T* y = as<T>(p.y) + at + from;
      const std::uint32_t* own = words + from;
      each_vector(to - from, [&](std::int64_t i, auto part) {
        const Floats scaled = load(x + i, part) * scale;
        store(y + i, keeps(own + i, least) ? scaled : Floats{}, part);
      });
    };
    each_range(stream, p.batch * chunks, 1, 8 * p.batch * p.elements_per_sample,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   drop(i / chunks, i % chunks * kElements);
                 }
               });
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
