#include "src/train/numerics/bench.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/log.h"
#include "src/base/philox.h"
#include "src/base/units.h"
#include "src/compute/kernel_choice.h"
#include "src/kernels/mirrored/mirrored_kernels.h"

namespace trireme {
namespace {

// Number of random numbers, which are repeated to fill a tensor. It is prime, so that no two rows
// of a matrix begin alike.
constexpr std::int64_t kMaterial = 16381;
// Number of elements from which on kernels use threads (kElementsForThreads of cpu/isa/loops.h).
constexpr std::int64_t kElementsOfThreads = 16640;

constexpr const char* kRemedy =
    "take this host out of the job and test it (trireme health); numerics.self_check=false skips "
    "this check";

// Tolerance is the error that is allowed: relative * |expected| + absolute * the largest
// |expected|.
struct Tolerance {
  double relative;
  double absolute;
};

// Allows one rounding to the result's type, and the error of its sum: n terms of similar size, each
// addition rounded to f32, are off by about 2^-24 sqrt(n) of their largest sum (Higham, 2002, ch.
// 4). 32 times that is allowed, which no sum in f32 comes near and one missing term exceeds.
// Kernels on bf16 or f16 also round on the way (weights of attention, softmax): by 2^-8 or 2^-11 of
// the largest.
Tolerance tolerance_of(DType type, DType compute, std::int64_t terms) {
  const double sum = 32 * 0x1p-24 * std::sqrt(static_cast<double>(terms));
  const auto rounding = [](DType dtype) {
    return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0;
  };
  return {type == DType::f32 || type == DType::f64 ? 0x1p-18 : 2 * rounding(type),
          std::max(sum, rounding(compute))};
}

// Returns whether both are the same infinity, or both NaN. Their difference is NaN, but it is no
// fault: an option that overflows does so on healthy hardware, too.
bool overflow_alike(float a, float b) {
  return (std::isinf(a) && a == b) || (std::isnan(a) && std::isnan(b));
}

}  // namespace

namespace {

float float_at(const ConstView& view, std::int64_t i) {
  switch (view.dtype) {
    case DType::bf16:
      return to_float(as<bf16>(view)[i]);
    case DType::f16:
      return to_float(as<f16>(view)[i]);
    default:
      return as<float>(view)[i];
  }
}

CudaAttention attention_of(const KernelShapes& shapes) {
  return shapes.by_cudnn ? CudaAttention::cudnn : CudaAttention::own;
}

}  // namespace

std::vector<float> floats_of(const ConstView& view) {
  std::vector<float> result(static_cast<std::size_t>(view.count));
  for (std::int64_t i = 0; i < view.count; ++i) {
    result[static_cast<std::size_t>(i)] = float_at(view, i);
  }
  return result;
}

CheckBench::CheckBench(DeviceContext& context, const KernelShapes& the_shapes)
    : kernels(context.kernels_read_host_memory()
                  ? context.kernels()
                  : mirrored_kernels(Placement::aligned, attention_of(the_shapes))),
      reference(kernels_named("reference")),
      stream(context.stream()),
      shapes(the_shapes),
      context_(context),
      pool_(Device::cpu()),
      material_(static_cast<std::size_t>(kMaterial)) {
  std::uint64_t i = 0;
  for (float& x : material_) {
    x = static_cast<float>(static_cast<std::int64_t>(mix64(++i) >> 40) - (1 << 23)) * 0x1p-23F;
  }
}

std::string CheckBench::table() const {
  return fmt::format("the {} kernels", context_.kernels().name);
}

std::string CheckBench::place() const {
  const Device device = context_.device();
  return device.is_host()
             ? fmt::format("on {} with {}", host_name(), counted(stream.threads(), "thread"))
             : fmt::format("on CUDA device {} of {}", device.index, host_name());
}

std::int64_t CheckBench::rows_for(std::int64_t width) const {
  const std::int64_t rows = (kElementsOfThreads + width - 1) / width;
  return std::min(shapes.rows(), std::max<std::int64_t>(rows, stream.threads()));
}

Tensor CheckBench::numbers(std::int64_t count, DType dtype, std::int64_t seed) {
  Tensor made(pool_, {count}, dtype);
  const std::int64_t from = seed * 977 % kMaterial;
  const std::int64_t first = std::min(count, kMaterial);
  for (std::int64_t i = 0; i < first; ++i) {
    const float x = material_[static_cast<std::size_t>((from + i) % kMaterial)];
    if (dtype == DType::bf16) {
      as<bf16>(made.view())[i] = to_bf16(x);
    } else if (dtype == DType::f16) {
      as<f16>(made.view())[i] = to_f16(x);
    } else {
      as<float>(made.view())[i] = x;
    }
  }
  auto* const bytes = static_cast<char*>(made.view().data);
  for (std::int64_t i = first; i < count; i += kMaterial) {
    std::copy_n(bytes, std::min(kMaterial, count - i) * size_of(dtype), bytes + i * size_of(dtype));
  }
  return made;
}

Tensor CheckBench::unwritten(std::int64_t count, DType dtype) {
  Tensor made(pool_, {count}, dtype);
  std::fill_n(static_cast<unsigned char*>(made.view().data), made.view().bytes(),
              static_cast<unsigned char>(0xFF));
  return made;
}

Tensor CheckBench::copy(const Tensor& other) {
  Tensor made(pool_, other.shape(), other.dtype());
  std::copy_n(static_cast<const char*>(other.view().data), other.view().bytes(),
              static_cast<char*>(made.view().data));
  return made;
}

Tensor CheckBench::ids(std::int64_t count, std::int64_t limit) {
  Tensor made(pool_, {count}, DType::i32);
  for (std::int64_t i = 0; i < count; ++i) {
    as<std::int32_t>(made.view())[i] = static_cast<std::int32_t>(
        mix64(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(limit));
  }
  return made;
}

void CheckBench::compare(std::string_view kernel, const ConstView& found, const ConstView& expected,
                         std::int64_t terms) {
  std::vector<float> results = floats_of(found);
  fault("start.kernel", results.data(), static_cast<std::int64_t>(results.size() * sizeof(float)));
  const std::vector<float> right = floats_of(expected);
  double largest = 0;
  for (const float x : right) {
    if (std::isfinite(x)) {
      largest = std::max(largest, std::abs(static_cast<double>(x)));
    }
  }
  const Tolerance tolerance = tolerance_of(found.dtype, dtype(), terms);
  std::size_t worst = results.size();
  std::size_t bad = 0;
  double worst_excess = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const double off = std::abs(static_cast<double>(results[i]) - static_cast<double>(right[i]));
    const double allowed =
        tolerance.relative * std::abs(static_cast<double>(right[i])) + tolerance.absolute * largest;
    if (std::isfinite(right[i]) ? off <= allowed : overflow_alike(results[i], right[i])) {
      continue;
    }
    ++bad;
    const double excess =
        std::isfinite(off) ? off - allowed : std::numeric_limits<double>::infinity();
    if (worst == results.size() || excess > worst_excess) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (bad > 0) {
    const auto x = static_cast<double>(right[worst]);
    throw DeviceError(fmt::format(
        "self-check: {} of {} computes wrong numbers {}: {} of {} {} "
        "results differ from the reference; the largest error is at element {}: {} instead of "
        "{} (off by {:.3g}, tolerance {:.3g}); {}",
        kernel, table(), place(), bad, right.size(), dtype_name(found.dtype), worst, results[worst],
        right[worst], std::abs(static_cast<double>(results[worst]) - x),
        tolerance.relative * std::abs(x) + tolerance.absolute * largest, kRemedy));
  }
}

void CheckBench::check_written(std::string_view kernel, const ConstView& found) const {
  const auto is_nan = [&](std::int64_t i) {
    const float x = float_at(found, i);
    return x != x;
  };
  for (std::int64_t i = 0; i < found.count; ++i) {
    if (is_nan(i)) {
      throw DeviceError(
          fmt::format("self-check: {} of {} does not write all results {}: "
                      "element {} of {} was not written, or is not a number; {}",
                      kernel, table(), place(), i, found.count, kRemedy));
    }
  }
}

}  // namespace trireme
