// Defines the kernel of rotary positions. A block computes the angles of a few tokens once, into
// shared memory, and its threads apply them to a few adjacent elements of one head each.
#include <algorithm>

#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/entries.h"

namespace trireme::cuda {
namespace {

struct Sine {
  float sine;
  float cosine;
};

// Computes both to within 1e-7, as src/kernels/cpu/isa/rope.cc does: the angle's reduction to
// |r| <= pi/4 is in double, since an angle at a late position has few bits left in float, and the
// polynomials (Cephes, sinf and cosf) are in float.
__device__ Sine sine_of(double angle) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  constexpr double kHalfPi = 1.57079632679489661923;
  constexpr double kHalfPiLow = 6.123233995736766e-17;
  const double turns = rint(angle * kTwoOverPi);
  const auto r = static_cast<float>((angle - turns * kHalfPi) - turns * kHalfPiLow);
  const auto quadrant = static_cast<unsigned>(static_cast<long long>(turns)) % 4;
  const float z = r * r;
  const float s = r + r * z * (-1.6666654611e-1F + z * (8.3321608736e-3F - z * 1.9515295891e-4F));
  const float c =
      1.0F - 0.5F * z +
      z * z * (4.166664568298827e-2F + z * (-1.388731625493765e-3F + z * 2.443315711809948e-5F));
  const float sine = quadrant % 2 == 1 ? c : s;
  const float cosine = quadrant % 2 == 1 ? s : c;
  return {quadrant >= 2 ? -sine : sine, quadrant == 1 || quadrant == 2 ? -cosine : cosine};
}

constexpr int kRopeThreads = 128;
constexpr std::int64_t kBlockAngles = 256;  // at least those of one token
constexpr int kRotated = 2;                 // groups of angles per thread at a time

template <class T>
struct Rotation {
  static constexpr int kAngles = kPerAccess<T>;  // of a group
  T* x;
  const float* inverse_frequency;
  std::int64_t tokens;
  std::int64_t time;
  std::int64_t first_position;
  std::int64_t stride;
  int block_tokens;
  int groups;  // per head: ceil(half / kAngles)
  int half;    // half the head dimension
  int heads;
  float direction;  // -1 backward

  // Computes the sines and cosines of the block's tokens, [block_tokens, groups * kAngles].
  __device__ void compute_angles(std::int64_t first, int count, float* sines,
                                 float* cosines) const {
    const int padded = groups * kAngles;
    for (int i = static_cast<int>(threadIdx.x); i < count * padded; i += kRopeThreads) {
      const int j = i % padded;
      const auto position = static_cast<double>(first_position + (first + i / padded) % time);
      const float frequency = j < half ? inverse_frequency[j] : 0.0F;
      const Sine own = sine_of(position * static_cast<double>(frequency));
      sines[i] = direction * own.sine;
      cosines[i] = own.cosine;
    }
  }
};

// A group of angles of one head and token.
template <class T>
struct RotatedGroup {
  static constexpr int kAngles = kPerAccess<T>;
  T* at;
  int left;    // angles from the first on
  int angles;  // place of their sines
  Floats<kAngles> x1;
  Floats<kAngles> x2;

  template <bool kWide>
  __device__ void fetch(const Rotation<T>& p, std::int64_t first, int number) {
    const int group = number % p.groups;
    const int head = number / p.groups % p.heads;
    const int token = number / p.groups / p.heads;
    left = p.half - group * kAngles;
    angles = (token * p.groups + group) * kAngles;
    at = p.x + (first + token) * p.stride + static_cast<std::int64_t>(head) * 2 * p.half +
         group * kAngles;
    x1 = load<kAngles, kWide>(at, left);
    x2 = load<kAngles, kWide>(at + p.half, left);
  }
  template <bool kWide>
  __device__ void rotate(const Rotation<T>& p, const float* sines, const float* cosines) {
    const auto sine = load<kAngles, true>(sines + angles, kAngles);
    const auto cosine = load<kAngles, true>(cosines + angles, kAngles);
#pragma unroll
    for (int k = 0; k < kAngles; ++k) {
      const float old = x1.x[k];
      x1.x[k] = old * cosine.x[k] - x2.x[k] * sine.x[k];
      x2.x[k] = x2.x[k] * cosine.x[k] + old * sine.x[k];
    }
    store<kWide>(at, x1, left);
    store<kWide>(at + p.half, x2, left);
  }
};

// A block takes a few tokens: it computes their angles once, and rotates all heads by them.
template <class T, bool kWide>
__global__ void __launch_bounds__(kRopeThreads) rope_kernel(const Rotation<T> p) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * p.block_tokens;
  const auto count =
      static_cast<int>(min(static_cast<std::int64_t>(p.block_tokens), p.tokens - first));
  float* const sines = dynamic_shared<float>();
  float* const cosines = sines + p.block_tokens * p.groups * Rotation<T>::kAngles;
  p.compute_angles(first, count, sines, cosines);
  __syncthreads();
  const int numbers = count * p.heads * p.groups;
  for (int number = static_cast<int>(threadIdx.x); number < numbers;
       number += kRotated * kRopeThreads) {
    RotatedGroup<T> x[kRotated];
#pragma unroll
    for (int n = 0; n < kRotated; ++n) {
      if (number + n * kRopeThreads < numbers) {
        x[n].template fetch<kWide>(p, first, number + n * kRopeThreads);
      }
    }
#pragma unroll
    for (int n = 0; n < kRotated; ++n) {
      if (number + n * kRopeThreads < numbers) {
        x[n].template rotate<kWide>(p, sines, cosines);
      }
    }
  }
}

}  // namespace

void rope(Stream& stream, const Rope& p) {
  const std::int64_t tokens = p.batch * p.time;
  const std::int64_t half = p.head_dim / 2;
  if (tokens * p.heads * half == 0) {
    return;
  }
  by_type(p.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    constexpr std::int64_t kBytes = sizeof(T);
    constexpr std::int64_t kAngles = kPerAccess<T>;
    const std::int64_t groups = (half + kAngles - 1) / kAngles;
    const std::int64_t block_tokens =
        std::clamp<std::int64_t>(kBlockAngles / (groups * kAngles), 1, tokens);
    check(block_tokens * p.heads * groups < std::int64_t{1} << 30,
          "a block rotates fewer than 2^30 groups");
    const auto shared =
        static_cast<std::size_t>(2 * block_tokens * groups * kAngles) * sizeof(float);
    const Rotation<T> arguments{.x = device_pointer<T>(p.x),
                                .inverse_frequency = device_pointer<float>(p.inverse_frequency),
                                .tokens = tokens,
                                .time = p.time,
                                .first_position = p.first_position,
                                .stride = p.stride,
                                .block_tokens = static_cast<int>(block_tokens),
                                .groups = static_cast<int>(groups),
                                .half = static_cast<int>(half),
                                .heads = static_cast<int>(p.heads),
                                .direction = p.backward ? -1.0F : 1.0F};
    const bool wide = half * kBytes % 16 == 0 && aligned_rows(p.stride * kBytes, {p.x.data});
    by_bool(wide, [&](auto is_wide) {
      const auto& kernel = kernel_of<rope_kernel<T, decltype(is_wide)::value>>;
      permit_shared(kernel, shared);
      launch(kernel, dim3(blocks_of(tokens, block_tokens)), dim3(kRopeThreads), shared,
             cuda_stream(stream), arguments);
    });
  });
}

}  // namespace trireme::cuda
