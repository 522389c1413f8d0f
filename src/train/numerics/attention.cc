#include <algorithm>

#include "src/nn/alibi.h"
#include "src/train/numerics/bench.h"

namespace trireme {
namespace {

// Enough for more than one block of queries and keys, so that tiles on and beside the diagonal
// occur.
constexpr std::int64_t kMostTime = 72;

// Sizes describes the heads of one sample that are checked, with q, k and v side by side as in a
// run.
struct Sizes {
  explicit Sizes(const KernelShapes& s)
      : time(std::min(s.time, kMostTime)),
        kv_heads(std::min<std::int64_t>(s.kv_heads, 2)),
        heads(kv_heads * (s.heads / s.kv_heads)),
        head_dim(s.head_dim),
        stride((s.heads + 2 * s.kv_heads) * s.head_dim) {}
  std::int64_t time, kv_heads, heads, head_dim, stride;
  std::int64_t q() const { return heads * head_dim; }
  std::int64_t kv() const { return kv_heads * head_dim; }
};

AttentionForward forward_of(const Sizes& z, const KernelShapes& shapes, const ConstView& slopes,
                            const View& qkv, const View& out, const View& lse) {
  AttentionForward p;
  p.batch = 1;
  p.time = p.kv_time = p.kv_batch_rows = z.time;
  p.heads = z.heads;
  p.kv_heads = z.kv_heads;
  p.head_dim = z.head_dim;
  p.q = qkv;
  p.k = qkv.slice(z.q(), qkv.count - z.q());
  p.v = qkv.slice(z.q() + z.kv(), qkv.count - z.q() - z.kv());
  p.q_stride = p.kv_stride = z.stride;
  p.out = out;
  p.lse = lse;
  p.dropout.probability = shapes.attention_dropout;
  p.dropout.seed = 1;
  p.scale = shapes.attention_scale;
  p.slopes = slopes;
  return p;
}

}  // namespace

void check_attention(CheckBench& bench) {
  const Sizes z(bench.shapes);
  const DType type = bench.dtype();
  const Tensor qkv = bench.numbers(z.time * z.stride, type, 5);
  const Tensor dout = bench.numbers(z.time * z.q(), type, 6);
  const Tensor out = bench.unwritten(z.time * z.q(), type);
  const Tensor lse = bench.unwritten(z.time * z.heads, DType::f32);
  const Tensor expected_out = bench.unwritten(z.time * z.q(), type);
  const Tensor expected_lse = bench.unwritten(z.time * z.heads, DType::f32);
  const Tensor slopes = bench.unwritten(z.heads, DType::f32);
  for (std::int64_t h = 0; h < z.heads; ++h) {
    as<float>(slopes.view())[h] = alibi_slope(h, z.heads);
  }
  const ConstView bias = bench.shapes.alibi ? ConstView(slopes.view()) : ConstView();
  const AttentionForward forward =
      forward_of(z, bench.shapes, bias, qkv.view(), out.view(), lse.view());
  bench.kernels.attention_forward(bench.stream, forward);
  bench.reference.attention_forward(
      bench.stream,
      forward_of(z, bench.shapes, bias, qkv.view(), expected_out.view(), expected_lse.view()));
  bench.compare("attention_forward", out.view(), expected_out.view(), z.time);
  bench.compare("attention_forward (log-sum-exp)", lse.view(), expected_lse.view(), z.time);

  const auto backward = [&](const Kernels& table) {
    // The gap between the heads that are checked and the next token keeps its contents.
    const Tensor d = bench.numbers(z.time * z.stride, type, 7);
    AttentionBackward p;
    p.forward = forward;
    p.dout = dout.view();
    p.dq = d.view();
    p.dk = d.view().slice(z.q(), d.view().count - z.q());
    p.dv = d.view().slice(z.q() + z.kv(), d.view().count - z.q() - z.kv());
    table.attention_backward(bench.stream, p);
    return d;
  };
  const Tensor found = backward(bench.kernels);
  const Tensor expected = backward(bench.reference);
  bench.compare("attention_backward", found.view(), expected.view(), z.time * z.head_dim);
}

}  // namespace trireme
