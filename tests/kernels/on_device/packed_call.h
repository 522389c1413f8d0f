// PackedCall holds the tensors of one call of attention and of its gradient on the host; q, k and v
// lie side by side, as in a layer.
#pragma once

#include "src/kernels/kernels.h"
#include "tests/kernels/array.h"

namespace trireme::testing {

struct CallShape {
  std::int64_t batch, time, heads, kv_heads, head_dim;
};

struct PackedCall {
  explicit PackedCall(const CallShape& s, DType dtype = DType::bf16)
      : shape(s),
        width((s.heads + 2 * s.kv_heads) * s.head_dim),
        qkv(Array::random(s.batch * s.time * width, dtype, 1)),
        dout(Array::random(rows() * s.head_dim, dtype, 2)),
        out(rows() * s.head_dim, dtype),
        lse(rows(), DType::f32),
        gradient(s.batch * s.time * width, dtype) {}

  std::int64_t rows() const { return shape.batch * shape.time * shape.heads; }
  // Returns the keys of a packed array (part 1), or its values (part 2).
  View part(Array& packed, std::int64_t number) const {
    const std::int64_t first = (shape.heads + (number - 1) * shape.kv_heads) * shape.head_dim;
    return packed.view().slice(first, packed.count() - first);
  }
  AttentionForward forward() {
    return {.batch = shape.batch,
            .time = shape.time,
            .kv_time = shape.time,
            .heads = shape.heads,
            .kv_heads = shape.kv_heads,
            .head_dim = shape.head_dim,
            .q = qkv,
            .k = part(qkv, 1),
            .v = part(qkv, 2),
            .q_stride = width,
            .kv_stride = width,
            .kv_batch_rows = shape.time,
            .out = out,
            .lse = lse};
  }
  void run(const Kernels& kernels, Stream& stream) {
    kernels.attention_forward(stream, forward());
    kernels.attention_backward(stream, {.forward = forward(),
                                        .dout = dout,
                                        .dq = gradient,
                                        .dk = part(gradient, 1),
                                        .dv = part(gradient, 2)});
  }

  CallShape shape;
  std::int64_t width;
  Array qkv, dout, out, lse, gradient;
};

}  // namespace trireme::testing
