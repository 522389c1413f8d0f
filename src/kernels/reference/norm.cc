#include <vector>

#include "src/kernels/reference/reference.h"

namespace trireme::reference {
namespace {

// Returns the row to normalize: x, or sum = x + residual, which is stored first.
ConstView input(const NormForward& p) {
  for (std::int64_t i = 0; !p.residual.empty() && i < p.rows * p.channels; ++i) {
    put(p.sum, i, at(p.x, i) + at(p.residual, i));
  }
  return p.residual.empty() ? p.x : ConstView(p.sum);
}

void forward(const NormForward& p, bool centred) {
  const ConstView x = input(p);
  const auto channels = static_cast<double>(p.channels);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    double mean = 0;
    for (std::int64_t c = 0; centred && c < p.channels; ++c) {
      mean += at(x, row * p.channels + c) / channels;
    }
    double variance = 0;
    for (std::int64_t c = 0; c < p.channels; ++c) {
      variance += std::pow(at(x, row * p.channels + c) - mean, 2) / channels;
    }
    const double rstd = 1 / std::sqrt(variance + static_cast<double>(p.epsilon));
    for (std::int64_t c = 0; c < p.channels; ++c) {
      const double unit = (at(x, row * p.channels + c) - mean) * rstd;
      put(p.y, row * p.channels + c, unit * at(p.weight, c) + (centred ? at(p.bias, c) : 0));
    }
    put(p.rstd, row, rstd);
    if (centred) {
      put(p.mean, row, mean);
    }
  }
}

// Computes dx = rstd (g - mean(g) - unit mean(g unit)) with g = dy weight, without mean(g) for
// RMSNorm.
void backward_row(const NormBackward& p, bool centred, std::int64_t row, double* dweight,
                  double* dbias) {
  const double mean = centred ? at(p.mean, row) : 0;
  const double rstd = at(p.rstd, row);
  double g_mean = 0;
  double g_unit_mean = 0;
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const double dy = at(p.dy, row * p.channels + c);
    const double unit = (at(p.x, row * p.channels + c) - mean) * rstd;
    dweight[c] += dy * unit;
    dbias[c] += dy;
    g_mean += dy * at(p.weight, c) / static_cast<double>(p.channels);
    g_unit_mean += dy * at(p.weight, c) * unit / static_cast<double>(p.channels);
  }
  for (std::int64_t c = 0; c < p.channels; ++c) {
    const std::int64_t i = row * p.channels + c;
    const double unit = (at(p.x, i) - mean) * rstd;
    const double g = at(p.dy, i) * at(p.weight, c);
    const double skip = p.dresidual.empty() ? 0 : at(p.dresidual, i);
    put(p.dx, i, rstd * (g - (centred ? g_mean : 0) - unit * g_unit_mean) + skip);
  }
}

void backward(const NormBackward& p, bool centred) {
  std::vector<double> dweight(static_cast<std::size_t>(p.channels));
  std::vector<double> dbias(static_cast<std::size_t>(p.channels));
  for (std::int64_t row = 0; row < p.rows; ++row) {
    backward_row(p, centred, row, dweight.data(), dbias.data());
  }
  for (std::int64_t c = 0; c < p.channels; ++c) {
    put(p.dweight, c, dweight[static_cast<std::size_t>(c)]);
    if (centred) {
      put(p.dbias, c, dbias[static_cast<std::size_t>(c)]);
    }
  }
}

}  // namespace

void layer_norm_forward(Stream&, const NormForward& p) { forward(p, true); }
void layer_norm_backward(Stream&, const NormBackward& p) { backward(p, true); }
void rms_norm_forward(Stream&, const NormForward& p) { forward(p, false); }
void rms_norm_backward(Stream&, const NormBackward& p) { backward(p, false); }

}  // namespace trireme::reference
