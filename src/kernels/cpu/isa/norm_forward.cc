#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// ForwardRow holds typed pointers to one row (x, residual, sum, y: [C]) and to the weights ([C]).
template <class T>
struct ForwardRow {
  const T* x;
  const T* residual;
  T* sum;
  const T* weight;
  const T* bias;
  T* y;
};

// Stores sum = x + residual if there is a residual. Returns the row to normalize.
template <class T>
TRIREME_INLINE const T* add_residual(const ForwardRow<T>& row, std::int64_t channels) {
  if (row.residual == nullptr) {
    return row.x;
  }
  each_vector(channels, [&](std::int64_t i, auto part) {
    store(row.sum + i, load(row.x + i, part) + load(row.residual + i, part), part);
  });
  return row.sum;
}

struct Moments {
  float mean;
  float rstd;
};

// Runs the two passes of LayerNorm; for RMSNorm (centred = false) the mean is 0.
template <bool centred, class T>
Moments normalize(const ForwardRow<T>& row, std::int64_t channels, float epsilon) {
  const T* x = add_residual(row, channels);
  const auto count = static_cast<float>(channels);
  float mean = 0;
  if constexpr (centred) {
    mean = sum_of_vectors(channels, [=](std::int64_t i, auto part) { return load(x + i, part); }) /
           count;
  }
  const float square = sum_of_vectors(channels, [=](std::int64_t i, auto part) {
    const Floats d = kept(load(x + i, part) - mean, part);
    return d * d;
  });
  const float rstd = 1.0F / __builtin_sqrtf(square / count + epsilon);
  each_vector(channels, [&](std::int64_t i, auto part) {
    Floats y = (load(x + i, part) - mean) * rstd * load(row.weight + i, part);
    if constexpr (centred) {
      y += load(row.bias + i, part);
    }
    store(row.y + i, y, part);
  });
  return {mean, rstd};
}

template <bool centred>
void forward(const Stream& stream, const NormForward& p) {
  by_type(p.x.dtype, [&]<class T>(T) {
    const std::int64_t width = p.channels;
    const ForwardRow<T> all{as<T>(p.x),      as<T>(p.residual), as<T>(p.sum),
                            as<T>(p.weight), as<T>(p.bias),     as<T>(p.y)};
    float* means = as<float>(p.mean);
    float* rstds = as<float>(p.rstd);
    each_range(stream, p.rows, 1, p.rows * width, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r) {
        ForwardRow<T> row = all;
        row.x += r * width;
        row.y += r * width;
        if (row.residual != nullptr) {
          row.residual += r * width;
          row.sum += r * width;
        }
        const Moments moments = normalize<centred>(row, width, p.epsilon);
        rstds[r] = moments.rstd;
        if constexpr (centred) {
          means[r] = moments.mean;
        }
      }
    });
  });
}

}  // namespace

void layer_norm_forward(Stream& stream, const NormForward& p) { forward<true>(stream, p); }
void rms_norm_forward(Stream& stream, const NormForward& p) { forward<false>(stream, p); }

}  // namespace trireme::cpu::TRIREME_ISA
