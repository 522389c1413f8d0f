#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/isa/row_blocks.h"
#include "src/kernels/cpu/scratch.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

struct Moments {
  float mean;
  float rstd;
};

// BackwardRow holds typed pointers to one row (dy, x, dresidual, dx: [C]), the weights and their
// gradients ([C]).
template <class T>
struct BackwardRow {
  const T* dy;
  const T* x;
  const T* dresidual;
  T* dx;
  const T* weight;
  float* dweight;
  float* dbias;
  Moments moments;
};

// Computes dx = rstd (g - mean(g) - unit mean(g unit)) + dresidual with g = dy weight and unit = (x
// - mean) rstd; RMSNorm has no mean(g). Adds the row's contribution to dweight and dbias.
template <bool centred, class T>
void backward_row(const BackwardRow<T>& row, std::int64_t channels) {
  const float mean = row.moments.mean;
  const float rstd = row.moments.rstd;
  const auto count = static_cast<float>(channels);
  Floats g_sum{};
  Floats g_unit_sum{};
  each_vector(channels, [&](std::int64_t i, auto part) {
    const Floats dy = load(row.dy + i, part);
    const Floats unit = (load(row.x + i, part) - mean) * rstd;
    const Floats g = dy * load(row.weight + i, part);
    g_sum += g;
    g_unit_sum += g * unit;
    store(row.dweight + i, load(row.dweight + i, part) + dy * unit, part);
    if constexpr (centred) {
      store(row.dbias + i, load(row.dbias + i, part) + dy, part);
    }
  });
  const float g_mean = centred ? sum_of_lanes(g_sum) / count : 0.0F;
  const float g_unit_mean = sum_of_lanes(g_unit_sum) / count;
  each_vector(channels, [&](std::int64_t i, auto part) {
    const Floats unit = (load(row.x + i, part) - mean) * rstd;
    const Floats g = load(row.dy + i, part) * load(row.weight + i, part);
    Floats dx = rstd * (g - g_mean - unit * g_unit_mean);
    if (row.dresidual != nullptr) {
      dx += load(row.dresidual + i, part);
    }
    store(row.dx + i, dx, part);
  });
}

template <bool centred, class T>
void backward_block(const NormBackward& p, std::int64_t first, std::int64_t last, float* parts) {
  const std::int64_t width = p.channels;
  for (std::int64_t i = 0; i < 2 * width; ++i) {
    parts[i] = 0;
  }
  for (std::int64_t r = first; r < last; ++r) {
    const T* skip = as<T>(p.dresidual);
    const Moments moments{centred ? as<float>(p.mean)[r] : 0.0F, as<float>(p.rstd)[r]};
    backward_row<centred>(
        BackwardRow<T>{as<T>(p.dy) + r * width, as<T>(p.x) + r * width,
                       skip == nullptr ? skip : skip + r * width, as<T>(p.dx) + r * width,
                       as<T>(p.weight), parts, parts + width, moments},
        width);
  }
}

template <bool centred>
void backward(const Stream& stream, const NormBackward& p) {
  const std::int64_t width = p.channels;
  const std::int64_t block = rows_per_block(p.rows, 16);
  const std::int64_t blocks = (p.rows + block - 1) / block;
  auto* const parts = static_cast<float*>(scratch(Scratch::parts, blocks * 2 * width * 4));
  by_type(p.x.dtype, [&]<class T>(T) {
    each_range(stream, blocks, 1, p.rows * width, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t b = first; b < last; ++b) {
        const std::int64_t end = (b + 1) * block < p.rows ? (b + 1) * block : p.rows;
        backward_block<centred, T>(p, b * block, end, parts + b * 2 * width);
      }
    });
  });
  add_blocks(stream, blocks, 2 * width, width, parts, as<float>(p.dweight));
  if constexpr (centred) {
    add_blocks(stream, blocks, 2 * width, width, parts + width, as<float>(p.dbias));
  }
}

}  // namespace

void layer_norm_backward(Stream& stream, const NormBackward& p) { backward<true>(stream, p); }
void rms_norm_backward(Stream& stream, const NormBackward& p) { backward<false>(stream, p); }

}  // namespace trireme::cpu::TRIREME_ISA
