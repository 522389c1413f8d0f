#include "src/base/error.h"
#include "tests/kernels/cases.h"
#include "tests/kernels/tables.h"

namespace trireme::testing {
namespace {

struct ProductShape {
  std::int64_t m, n, k;
};

constexpr ProductShape kProducts[] = {{1, 1, 1},      {3, 5, 7},      {17, 33, 65},
                                      {64, 96, 128},  {1, 257, 48},   {129, 1, 100},
                                      {40, 1003, 24}, {96, 96, 2100}, {17, 24, 4096}};

struct ProductKind {
  std::string name;
  bool transpose_a = false;
  bool transpose_b = false;
  bool bias = false;
  bool accumulate = false;
  Epilogue epilogue = Epilogue::none;
  bool f32_out = false;
  bool gaps = false;  // between the rows of A, B and C, which must stay untouched
};

const ProductKind kKinds[] = {
    {.name = "plain"},
    {.name = "bias", .bias = true},
    {.name = "tb", .transpose_b = true},
    {.name = "ta_f32", .transpose_a = true, .f32_out = true},
    {.name = "ta_accumulate", .transpose_a = true, .accumulate = true, .f32_out = true},
    {.name = "tatb", .transpose_a = true, .transpose_b = true},
    {.name = "gaps", .gaps = true},
    {.name = "tb_gaps", .transpose_b = true, .gaps = true},
    {.name = "ta_accumulate_gaps",
     .transpose_a = true,
     .accumulate = true,
     .f32_out = true,
     .gaps = true},
    {.name = "bias_gelu", .bias = true, .epilogue = Epilogue::gelu},
    {.name = "tb_gelu_backward", .transpose_b = true, .epilogue = Epilogue::gelu_backward}};

Results run_product(const ProductShape& s, const ProductKind& kind, DType dtype,
                    const Kernels& kernels, Stream& stream) {
  const auto row = [&](std::int64_t columns) {
    return kind.gaps ? aligned_row(columns + 1) : columns;
  };
  const std::int64_t a_row = row(kind.transpose_a ? s.m : s.k);
  const std::int64_t b_row = row(kind.transpose_b ? s.k : s.n);
  const Array a = Array::random((kind.transpose_a ? s.k : s.m) * a_row, dtype, 1);
  const Array b = Array::random((kind.transpose_b ? s.n : s.k) * b_row, dtype, 2);
  const Array bias = Array::random(s.n, dtype, 3);
  Array aux = Array::random(s.m * s.n, dtype, 4);
  Array c = Array::random(s.m * row(s.n), kind.f32_out ? DType::f32 : dtype, 5);
  kernels.matmul(stream, {.m = s.m,
                          .n = s.n,
                          .k = s.k,
                          .a = a,
                          .b = b,
                          .c = c,
                          .bias = kind.bias ? bias.view() : ConstView{},
                          .aux = kind.epilogue == Epilogue::none ? View{} : aux.view(),
                          .transpose_a = kind.transpose_a,
                          .transpose_b = kind.transpose_b,
                          .accumulate = kind.accumulate,
                          .epilogue = kind.epilogue,
                          .pitch_a = kind.gaps ? a_row : 0,
                          .pitch_b = kind.gaps ? b_row : 0,
                          .pitch_c = kind.gaps ? row(s.n) : 0});
  return {{"c", c}, {"aux", aux}};
}

struct AttentionShape {
  std::int64_t batch, time, kv_time, heads, kv_heads, head_dim;
};

constexpr AttentionShape kTraining[] = {{1, 1, 1, 1, 1, 8},    {2, 17, 17, 3, 3, 16},
                                        {1, 65, 65, 4, 2, 64}, {2, 130, 130, 2, 1, 40},
                                        {1, 70, 70, 3, 3, 5},  {1, 200, 200, 2, 2, 128}};
constexpr AttentionShape kCached[] = {
    {1, 1, 1, 2, 2, 16}, {2, 1, 77, 4, 2, 64}, {1, 3, 130, 3, 1, 24}};

// q, k and v lie side by side in token rows, with a gap that must stay untouched.
struct PackedAttention {
  PackedAttention(const AttentionShape& s, DType dtype)
      : q_width(s.heads * s.head_dim),
        kv_width(s.kv_heads * s.head_dim),
        stride(q_width + 2 * kv_width + 3),
        kv_rows(s.batch * (s.kv_time + (s.kv_time == s.time ? 0 : 2))),
        q(Array::random(s.batch * s.time * stride, dtype, 1)),
        kv(Array::random(kv_rows * stride, dtype, 2)),
        out(s.batch * s.time * q_width, dtype),
        lse(s.batch * s.heads * s.time, DType::f32) {
    forward = {.batch = s.batch,
               .time = s.time,
               .kv_time = s.kv_time,
               .heads = s.heads,
               .kv_heads = s.kv_heads,
               .head_dim = s.head_dim,
               .q = q,
               .k = kv.view().slice(q_width, kv.count() - q_width),
               .v = kv.view().slice(q_width + kv_width, kv.count() - q_width - kv_width),
               .q_stride = stride,
               .kv_stride = stride,
               .kv_batch_rows = kv_rows / s.batch,
               .out = out,
               .lse = lse};
  }
  PackedAttention(const PackedAttention&) = delete;
  PackedAttention& operator=(const PackedAttention&) = delete;

  std::int64_t q_width, kv_width, stride, kv_rows;
  Array q, kv, out, lse;
  AttentionForward forward;
};

Results run_attention(const AttentionShape& s, DType dtype, const Kernels& kernels,
                      Stream& stream) {
  PackedAttention packed(s, dtype);
  kernels.attention_forward(stream, packed.forward);
  return {{"out", packed.out}, {"lse", packed.lse}};
}

Results run_attention_backward(const AttentionShape& s, DType dtype, const Kernels& kernels,
                               Stream& stream) {
  PackedAttention p(s, dtype);
  kernels_named("reference").attention_forward(stream, p.forward);
  const Array dout = Array::random(p.out.count(), dtype, 4);
  Array grad = Array::random(p.q.count(), dtype, 5);
  const auto rest = [&](std::int64_t first) {
    return grad.view().slice(first, grad.count() - first);
  };
  kernels.attention_backward(stream, {.forward = p.forward,
                                      .dout = dout,
                                      .dq = grad,
                                      .dk = rest(p.q_width),
                                      .dv = rest(p.q_width + p.kv_width)});
  return {{"dqkv", grad}};
}

std::string word(const AttentionShape& s) {
  return fmt::format("b{}_t{}_of{}_h{}_kv{}_d{}", s.batch, s.time, s.kv_time, s.heads, s.kv_heads,
                     s.head_dim);
}

void add_attention(std::vector<Case>& cases, DType dtype) {
  const auto add = [&](const AttentionShape& s) {
    cases.push_back({fmt::format("attention_forward_{}_{}", word(s), dtype_word(dtype)),
                     [=](const Kernels& kernels, Stream& stream) {
                       return run_attention(s, dtype, kernels, stream);
                     },
                     {1e-5, 1e-5}});
  };
  for (const AttentionShape& s : kCached) {
    add(s);
  }
  for (const AttentionShape& s : kTraining) {
    add(s);
    cases.push_back({fmt::format("attention_backward_{}_{}", word(s), dtype_word(dtype)),
                     [=](const Kernels& kernels, Stream& stream) {
                       return run_attention_backward(s, dtype, kernels, stream);
                     },
                     {2e-5, 1e-5},
                     {1.0 / 64, 1e-2}});
  }
}

}  // namespace

std::vector<Case> product_cases() {
  std::vector<Case> cases;
  for (const DType dtype : activation_types()) {
    for (const ProductShape& s : kProducts) {
      // An H200's matrix units were seen to lose 9e-6 of a sum of 4096 products of bf16.
      const Tolerance tolerance =
          dtype != DType::f32 && s.k > 4000 ? Tolerance{1e-5, 1e-5} : Tolerance{4e-6, 2e-6};
      for (const ProductKind& kind : kKinds) {
        cases.push_back(
            {fmt::format("matmul_{}_{}x{}x{}_{}", kind.name, s.m, s.n, s.k, dtype_word(dtype)),
             [=, &kind](const Kernels& kernels, Stream& stream) {
               return run_product(s, kind, dtype, kernels, stream);
             },
             tolerance});
      }
    }
    add_attention(cases, dtype);
  }
  return cases;
}

}  // namespace trireme::testing
