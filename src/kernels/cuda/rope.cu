// Defines the kernel of rotary positions. A thread takes a few adjacent angles of one token and
// applies them to all heads.
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/each.h"
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

template <class T>
struct Rotation {
  static constexpr int kAngles = kPerAccess<T>;
  static constexpr int kCount = 1;  // group of kAngles angles
  T* x;
  const float* inverse_frequency;
  std::int64_t count;             // tokens * groups_per_token
  std::int64_t groups_per_token;  // ceil(half / kAngles)
  std::int64_t half;              // half the head dimension
  std::int64_t time;
  std::int64_t heads;
  std::int64_t first_position;
  std::int64_t stride;
  float direction;  // -1 backward
  bool wide;

  template <bool kWide>
  __device__ void run(std::int64_t group) const {
    const std::int64_t token = group / groups_per_token;
    const std::int64_t j = group % groups_per_token * kAngles;
    const std::int64_t left = half - j;
    const auto position = static_cast<double>(first_position + token % time);
    Floats<kAngles> cosine;
    Floats<kAngles> sine;
#pragma unroll
    for (int k = 0; k < kAngles; ++k) {
      const float frequency = k < left ? inverse_frequency[j + k] : 0.0F;
      const Sine own = sine_of(position * static_cast<double>(frequency));
      cosine.x[k] = own.cosine;
      sine.x[k] = direction * own.sine;
    }
    for (std::int64_t head = 0; head < heads; ++head) {
      T* const first = x + token * stride + head * 2 * half + j;
      auto x1 = load<kAngles, kWide>(first, left);
      auto x2 = load<kAngles, kWide>(first + half, left);
#pragma unroll
      for (int k = 0; k < kAngles; ++k) {
        const float old = x1.x[k];
        x1.x[k] = old * cosine.x[k] - x2.x[k] * sine.x[k];
        x2.x[k] = x2.x[k] * cosine.x[k] + old * sine.x[k];
      }
      store<kWide>(first, x1, left);
      store<kWide>(first + half, x2, left);
    }
  }
};

}  // namespace

void rope(Stream& stream, const Rope& p) {
  by_type(p.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    constexpr std::int64_t kBytes = sizeof(T);
    const std::int64_t half = p.head_dim / 2;
    const std::int64_t groups = (half + kPerAccess<T> - 1) / kPerAccess<T>;
    each(stream, Rotation<T>{.x = device_pointer<T>(p.x),
                             .inverse_frequency = device_pointer<float>(p.inverse_frequency),
                             .count = p.batch * p.time * groups,
                             .groups_per_token = groups,
                             .half = half,
                             .time = p.time,
                             .heads = p.heads,
                             .first_position = p.first_position,
                             .stride = p.stride,
                             .direction = p.backward ? -1.0F : 1.0F,
                             .wide = half * kBytes % 16 == 0 &&
                                     aligned_rows(p.stride * kBytes, {p.x.data})});
  });
}

}  // namespace trireme::cuda
