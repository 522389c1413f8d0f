// Measures the rates that other figures are divided by, namely those of matrix products and of
// copies within a device and from it to the host; and attention, which is mostly matrix products.
#include "benchmarks/kernels/bench.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

constexpr std::int64_t kHeads = 12;
constexpr std::int64_t kHeadDim = 64;

void copy(benchmark::State& state) {
  Bench b;
  const Buffer from = b.filled(b.sizes.parameters, DType::f32);
  const Buffer to = b.filled(b.sizes.parameters, DType::f32);
  b.measure(state, b.sizes.parameters * 8,
            [&] { b.stream.copy(to.view(DType::f32), from.view(DType::f32)); });
}

// The host's memory is pinned, like the memory from which checkpoints are written.
void copy_to_host(benchmark::State& state) {
  Bench b;
  Pool host(Device::cpu(), b.stream.device().is_host()
                               ? host_memory()
                               : cuda::pinned_memory(b.stream.device().index));
  const Buffer from = b.filled(b.sizes.parameters, DType::f32);
  const Buffer to = host.allocate(b.sizes.parameters * 4);
  b.measure(state, b.sizes.parameters * 4,
            [&] { b.stream.copy(to.view(DType::f32), from.view(DType::f32)); });
}

// Returns random numbers of bf16: a GPU needs less power for constant ones, and runs faster.
Buffer varied(Bench& b, std::int64_t count) {
  Buffer buffer = b.filled(count, DType::bf16, 1);
  const View all = buffer.view(DType::bf16);
  b.kernels.dropout(b.stream, {.batch = 1,
                               .elements_per_sample = count,
                               .seed = 1,
                               .probability = 0.5F,
                               .x = all,
                               .y = all});
  return buffer;
}

void product(benchmark::State& state) {
  Bench b;
  const std::int64_t n = b.sizes.product;
  const Buffer operands = varied(b, 2 * n * n);
  const View all = operands.view(DType::bf16);
  const Buffer result = b.filled(n * n, DType::bf16);
  b.measure(
      state, 0,
      [&] {
        b.kernels.matmul(b.stream, {.m = n,
                                    .n = n,
                                    .k = n,
                                    .a = all.slice(0, n * n),
                                    .b = all.slice(n * n, n * n),
                                    .c = result.view(DType::bf16)});
      },
      2 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n));
}

struct AttentionBuffers {
  explicit AttentionBuffers(Bench& bench)
      : time(bench.sizes.time),
        rows(bench.sizes.batch * time),
        qkv(varied(bench, 3 * rows * kChannels)),
        out(bench.filled(rows * kChannels, DType::bf16)),
        lse(bench.filled(rows * kHeads, DType::f32)),
        dout(varied(bench, rows * kChannels)),
        dqkv(bench.filled(3 * rows * kChannels, DType::bf16)) {}

  static constexpr std::int64_t kChannels = kHeads * kHeadDim;
  static View part(const Buffer& all, std::int64_t i) {
    const View view = all.view(DType::bf16);
    return view.slice(i * kChannels, view.count - i * kChannels);
  }
  AttentionForward forward() const {
    AttentionForward p;
    p.batch = rows / time;
    p.time = p.kv_time = p.kv_batch_rows = time;
    p.heads = p.kv_heads = kHeads;
    p.head_dim = kHeadDim;
    p.q = part(qkv, 0);
    p.k = part(qkv, 1);
    p.v = part(qkv, 2);
    p.q_stride = p.kv_stride = 3 * kChannels;
    p.out = out.view(DType::bf16);
    p.lse = lse.view(DType::f32);
    return p;
  }
  // Returns the operations of forward's two products. Half of the weights are masked.
  double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(time * kChannels);
  }

  std::int64_t time;
  std::int64_t rows;
  Buffer qkv;
  Buffer out;
  Buffer lse;
  Buffer dout;
  Buffer dqkv;
};

void attention_forward(benchmark::State& state) {
  Bench b;
  const AttentionBuffers at(b);
  b.measure(
      state, 0, [&] { b.kernels.attention_forward(b.stream, at.forward()); }, at.flops());
}

// Backward computes five products, forward two.
void attention_backward(benchmark::State& state) {
  Bench b;
  const AttentionBuffers at(b);
  b.kernels.attention_forward(b.stream, at.forward());
  b.measure(
      state, 0,
      [&] {
        b.kernels.attention_backward(b.stream, {.forward = at.forward(),
                                                .dout = at.dout.view(DType::bf16),
                                                .dq = AttentionBuffers::part(at.dqkv, 0),
                                                .dk = AttentionBuffers::part(at.dqkv, 1),
                                                .dv = AttentionBuffers::part(at.dqkv, 2)});
      },
      2.5 * at.flops());
}

TRIREME_BENCHMARK(copy);
TRIREME_BENCHMARK(copy_to_host);
TRIREME_BENCHMARK(product);
TRIREME_BENCHMARK(attention_forward);
TRIREME_BENCHMARK(attention_backward);

}  // namespace
}  // namespace trireme
