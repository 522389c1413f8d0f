#include "src/kernels/cpu/isa/attention.h"

#include "src/kernels/cpu/isa/attention_backward.h"
#include "src/kernels/cpu/isa/attention_forward.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// With fewer queries than this, packing the keys costs more than the matrix products.
constexpr std::int64_t kFewQueries = 8;

void check_shape(const AttentionForward& p) {
  check(p.head_dim > 0 && p.kv_heads > 0 && p.heads % p.kv_heads == 0,
        "each key/value head serves as many query heads");
  check(p.kv_time >= p.time && p.kv_batch_rows >= p.kv_time,
        "queries are the last of the keys' times");
  check(p.dropout.probability == 0 || p.kv_time == p.time, "dropout is for training");
}

}  // namespace

void attention_forward(Stream& stream, const AttentionForward& p) {
  check_shape(p);
  if (p.time < kFewQueries && p.dropout.probability == 0) {
    attention_decode(stream, p);
  } else if (p.q.dtype == DType::f32) {
    attention_forward_blocks<FloatUnit, float>(stream, p);
  } else if (has_bf16_dot()) {
    attention_forward_bf16(stream, p);
  } else {
    attention_forward_blocks<FloatUnit, bf16>(stream, p);
  }
}

void attention_backward(Stream& stream, const AttentionBackward& p) {
  check_shape(p.forward);
  check(p.forward.kv_time == p.forward.time && p.forward.kv_batch_rows == p.forward.time &&
            !p.forward.lse.empty(),
        "backward has the shapes of training, and forward's results");
  if (p.forward.q.dtype == DType::f32) {
    attention_backward_blocks<FloatUnit, float>(stream, p);
  } else if (has_bf16_dot()) {
    attention_backward_bf16(stream, p);
  } else {
    attention_backward_blocks<FloatUnit, bf16>(stream, p);
  }
}

}  // namespace trireme::cpu::TRIREME_ISA
