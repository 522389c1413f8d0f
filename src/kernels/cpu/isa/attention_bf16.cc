// Implements attention on bf16 operands with the dot products of pairs of AVX512-BF16. The other
// builds, and processors without the extension, widen to f32 (attention.cc). So do builds with
// clang, which has no pragma that sets the target of what follows.
#include "src/kernels/cpu/isa/attention.h"
#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/loops.h"
#include "src/kernels/cpu/isa/vector_math.h"
#include "src/kernels/cpu/scratch.h"

#if defined(__AVX512F__) && !defined(__clang__)
#pragma GCC target("avx512bf16")
#include "src/kernels/cpu/isa/attention_backward.h"
#include "src/kernels/cpu/isa/attention_forward.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

struct PairUnit {
  using Element = bf16;
  static constexpr std::int64_t kElements = 2;
  TRIREME_INLINE static Floats multiply_add(Floats sum, Words a, Words b) {
    return reinterpret_cast<Floats>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum),
                                                     reinterpret_cast<__m512bh>(a),
                                                     reinterpret_cast<__m512bh>(b)));
  }
  TRIREME_INLINE static void put(bf16* p, Floats x) {
    const __m256bh half = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(x));
    std::memcpy(p, &half, sizeof half);
  }
  // The rows are bf16 values already, so no rounding is needed.
  template <class Row>
  TRIREME_INLINE static Words packed(Row row) {
    return bits_of(row(0)) >> 16 | bits_of(row(1));
  }
  // Rounds to bf16 and stores even[i] in the lower and odd[i] in the upper half of lane i.
  TRIREME_INLINE static Words interleaved(Floats even, Floats odd) {
    const __m256bh low = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(even));
    const __m256bh high = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(odd));
    return widened(reinterpret_cast<Halves>(low)) | widened(reinterpret_cast<Halves>(high)) << 16;
  }
};

}  // namespace

bool has_bf16_dot() {
  static const bool has = __builtin_cpu_supports("avx512bf16") != 0;
  return has;
}
void attention_forward_bf16(Stream& stream, const AttentionForward& p) {
  attention_forward_blocks<PairUnit, bf16>(stream, p);
}
void attention_backward_bf16(Stream& stream, const AttentionBackward& p) {
  attention_backward_blocks<PairUnit, bf16>(stream, p);
}

}  // namespace trireme::cpu::TRIREME_ISA
#else
namespace trireme::cpu::TRIREME_ISA {

bool has_bf16_dot() { return false; }
void attention_forward_bf16(Stream&, const AttentionForward&) {}
void attention_backward_bf16(Stream&, const AttentionBackward&) {}

}  // namespace trireme::cpu::TRIREME_ISA
#endif
