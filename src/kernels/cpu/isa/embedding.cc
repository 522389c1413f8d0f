#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/ids.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// Adds dout[r, first..last) to dtoken[ids[r], first..last) for all rows in order whose id this rank
// holds.
template <class T>
void scatter(const EmbeddingBackward& p, std::int64_t first, std::int64_t last) {
  const std::int32_t* ids = as<std::int32_t>(p.ids);
  const std::int64_t width = p.channels;
  const std::int64_t held = p.dtoken.count / width;
  for (std::int64_t r = 0; r < p.batch * p.time; ++r) {
    const std::int64_t row = ids[r] - p.first_id;
    if (row < 0 || row >= held) {
      continue;
    }
    const T* from = as<T>(p.dout) + r * width + first;
    float* to = as<float>(p.dtoken) + row * width + first;
    each_vector(last - first, [=](std::int64_t i, auto part) {
      store(to + i, load(to + i, part) + load(from + i, part), part);
    });
  }
}

// Sets dposition[t,:] to the sum over the batch in order, and to zero from row T on.
template <class T>
void sum_positions(const EmbeddingBackward& p, std::int64_t first, std::int64_t last) {
  const std::int64_t width = p.channels;
  for (std::int64_t t = first; t < last; ++t) {
    const T* from = as<T>(p.dout) + t * width;
    float* to = as<float>(p.dposition) + t * width;
    const std::int64_t members = t < p.time ? p.batch : 0;
    each_vector(width, [=, &p](std::int64_t i, auto part) {
      Floats sum{};
      for (std::int64_t b = 0; b < members; ++b) {
        sum += load(from + b * p.time * width + i, part);
      }
      store(to + i, sum, part);
    });
  }
}

// Sets out[r,:] = 0.
template <class T>
void clear_row(T* out, std::int64_t width) {
  each_vector(width, [=](std::int64_t i, auto part) { store(out + i, Floats{}, part); });
}

}  // namespace

void embedding_forward(Stream& stream, const EmbeddingForward& p) {
  const std::int64_t held = p.token.count / p.channels;
  if (!p.partial) {
    check_ids(p.ids, p.batch * p.time, held);
  }
  by_type(p.out.dtype, [&]<class T>(T) {
    const std::int64_t width = p.channels;
    const std::int64_t rows = p.batch * p.time;
    T* out = as<T>(p.out);
    const std::int32_t* ids = as<std::int32_t>(p.ids);
    const T* token = as<T>(p.token);
    const T* position = as<T>(p.position);
    each_range(stream, rows, 1, rows * width, [=, &p](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r) {
        const std::int64_t row = ids[r] - p.first_id;
        if (row < 0 || row >= held) {
          clear_row(out + r * width, width);
          continue;
        }
        const T* word = token + row * width;
        const T* place =
            position == nullptr ? nullptr : position + (p.first_position + r % p.time) * width;
        each_vector(width, [=](std::int64_t i, auto part) {
          const Floats x = load(word + i, part);
          store(out + r * width + i, place == nullptr ? x : x + load(place + i, part), part);
        });
      }
    });
  });
}

// The token gradients are divided among threads by channels, at least a cache line each, so that
// rows with the same id are added by one thread in order.
void embedding_backward(Stream& stream, const EmbeddingBackward& p) {
  if (!p.partial && !p.dtoken.empty()) {
    check_ids(p.ids, p.batch * p.time, p.dtoken.count / p.channels);
  }
  const std::int64_t elements = p.batch * p.time * p.channels;
  by_type(p.dout.dtype, [&]<class T>(T) {
    if (!p.dtoken.empty()) {
      each_range(stream, p.channels, 16, elements,
                 [&](std::int64_t first, std::int64_t last) { scatter<T>(p, first, last); });
    }
    if (!p.dposition.empty()) {
      each_range(stream, p.dposition.count / p.channels, 1, elements,
                 [&](std::int64_t first, std::int64_t last) { sum_positions<T>(p, first, last); });
    }
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
