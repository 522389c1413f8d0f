#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// The number of pairs whose sines are computed at a time.
constexpr std::int64_t kChunk = 64;

struct Sines {
  float cosine[kChunk];
  float sine[kChunk];
};

// Computes sin and cos of position * frequency to within 1e-7. The product and its reduction to |r|
// <= pi/4 are in double, the polynomials (Cephes, sinf and cosf) in float. A plain loop that the
// compiler vectorizes.
void make_sines(double position, const float* frequency, std::int64_t n, bool backward,
                Sines& out) {
  constexpr double kTwoOverPi = 0.63661977236758134308;
  constexpr double kHalfPi = 1.57079632679489661923;
  constexpr double kHalfPiLow = 6.123233995736766e-17;
  constexpr double kShift = 6755399441055744.0;  // 1.5 * 2^52 leaves the quadrant in the low bits
  const float direction = backward ? -1.0F : 1.0F;
  for (std::int64_t j = 0; j < n; ++j) {
    const double angle = position * static_cast<double>(frequency[j]);
    const double shifted = angle * kTwoOverPi + kShift;
    const double turns = shifted - kShift;
    const auto r = static_cast<float>((angle - turns * kHalfPi) - turns * kHalfPiLow);
    const auto quadrant = static_cast<std::uint32_t>(__builtin_bit_cast(std::uint64_t, shifted));
    const float z = r * r;
    const float s = r + r * z * (-1.6666654611e-1F + z * (8.3321608736e-3F - z * 1.9515295891e-4F));
    const float c =
        1.0F - 0.5F * z +
        z * z * (4.166664568298827e-2F + z * (-1.388731625493765e-3F + z * 2.443315711809948e-5F));
    const bool odd = (quadrant & 1U) != 0;
    const float sine = odd ? c : s;
    const float cosine = odd ? s : c;
    out.sine[j] = direction * ((quadrant & 2U) != 0 ? -sine : sine);
    out.cosine[j] = ((quadrant + 1U) & 2U) != 0 ? -cosine : cosine;
  }
}

// Rotates the n pairs (x[j], x[half + j]).
template <class T>
TRIREME_INLINE void rotate(T* x, std::int64_t half, std::int64_t n, const Sines& sines) {
  each_vector(n, [&](std::int64_t j, auto part) {
    const Floats c = load(sines.cosine + j, part);
    const Floats s = load(sines.sine + j, part);
    const Floats x1 = load(x + j, part);
    const Floats x2 = load(x + half + j, part);
    store(x + j, x1 * c - x2 * s, part);
    store(x + half + j, x2 * c + x1 * s, part);
  });
}

template <class T>
void rotate_token(const Rope& p, T* heads, std::int64_t position) {
  const std::int64_t half = p.head_dim / 2;
  const float* frequency = as<float>(p.inverse_frequency);
  Sines sines;
  for (std::int64_t j = 0; j < half; j += kChunk) {
    const std::int64_t n = half - j < kChunk ? half - j : kChunk;
    make_sines(static_cast<double>(position), frequency + j, n, p.backward, sines);
    for (std::int64_t h = 0; h < p.heads; ++h) {
      rotate(heads + h * p.head_dim + j, half, n, sines);
    }
  }
}

}  // namespace

void rope(Stream& stream, const Rope& p) {
  const std::int64_t rows = p.batch * p.time;
  by_type(p.x.dtype, [&]<class T>(T) {
    each_range(stream, rows, 1, rows * p.heads * p.head_dim,
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t r = first; r < last; ++r) {
                   rotate_token(p, as<T>(p.x) + r * p.stride, p.first_position + r % p.time);
                 }
               });
  });
}

}  // namespace trireme::cpu::TRIREME_ISA
