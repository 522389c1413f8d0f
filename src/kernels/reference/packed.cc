// The plain form of the kernels for packed weights, with sums in double.
#include <algorithm>
#include <cmath>
#include <vector>

#include "src/kernels/packed_kernels.h"
#include "src/kernels/reference/reference.h"

namespace trireme::reference {
namespace {

float packed_input(const ConstView& x, std::int64_t i) {
  return x.dtype == DType::bf16 ? to_float(as<bf16>(x)[i]) : as<float>(x)[i];
}

// Rounds a group of `count` elements of x to 8 bits.
void round_group(double* x, std::int64_t count) {
  float most = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto magnitude = static_cast<float>(std::abs(x[i]));
    most = magnitude > most || std::isnan(magnitude) ? magnitude : most;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(most)) {
      x[i] = NAN;
    } else if (most < kLeastMagnitude) {
      x[i] = 0;
    } else {
      x[i] = static_cast<double>(std::nearbyint(static_cast<float>(x[i]) * (127 / most))) *
             static_cast<double>(most / 127);
    }
  }
}

void multiply_packed(Stream& /*stream*/, const PackedMatrix& w, ConstView x, ConstView bias,
                     View y) {
  std::vector<double> rounded(static_cast<std::size_t>(w.columns));
  for (std::int64_t m = 0; m < x.count / w.columns; ++m) {
    for (std::int64_t k = 0; k < w.columns; ++k) {
      rounded[static_cast<std::size_t>(k)] = packed_input(x, m * w.columns + k);
    }
    for (std::int64_t first = 0; first < w.columns; first += kPackedGroup) {
      round_group(rounded.data() + first, std::min(kPackedGroup, w.columns - first));
    }
    for (std::int64_t row = 0; row < w.rows; ++row) {
      double sum = bias.empty() ? 0.0 : packed_input(bias, row);
      for (std::int64_t k = 0; k < w.columns; ++k) {
        sum += rounded[static_cast<std::size_t>(k)] * packed_element(w, row, k);
      }
      if (y.dtype == DType::bf16) {
        as<bf16>(y)[m * w.rows + row] = to_bf16(static_cast<float>(sum));
      } else {
        as<float>(y)[m * w.rows + row] = static_cast<float>(sum);
      }
    }
  }
}

}  // namespace

extern const PackedKernels kPacked;
const PackedKernels kPacked = {"reference", multiply_packed};

}  // namespace trireme::reference
