// Measures how close the memory-bound kernels come to the rate of the machine's memory. Each runs
// at GPT-2 124M's shapes (R = 1024 token rows, C = 768, V = 50257, 124M parameters) and prints the
// bytes per second of the traffic its arguments imply; `triad`, a[i] = b[i] + s c[i] over 1.5 GB,
// is the ceiling of the same run (write-allocate traffic not counted, as in STREAM).
//
//   kernels_benchmark --benchmark_filter=adamw --benchmark_repetitions=5
//
// TRIREME_KERNELS picks the table, OMP_NUM_THREADS the threads.
#include <vector>

#include <benchmark/benchmark.h>
#include <omp.h>

#include "src/compute/kernel_choice.h"
#include "src/device/pool.h"

namespace trireme {
namespace {

constexpr std::int64_t kRows = 1024;
constexpr std::int64_t kChannels = 768;
constexpr std::int64_t kVocabulary = 50257;
constexpr std::int64_t kParameters = 124475904;

// Bench holds what every benchmark works with: one table, one stream, buffers full of small
// numbers.
struct Bench {
  const Kernels& kernels = kernels_for(Device{});
  Stream stream{Device{}, omp_get_max_threads()};
  Pool pool{Device{}};

  Buffer filled(std::int64_t count, DType dtype, float value = 0.01F) {
    Buffer buffer = pool.allocate(count * size_of(dtype));
    kernels.fill(stream, buffer.view(dtype), value);
    return buffer;
  }
  Buffer ids(std::int64_t count, std::int64_t limit) {
    Buffer buffer = pool.allocate(count * 4);
    for (std::int64_t i = 0; i < count; ++i) {
      as<std::int32_t>(buffer.view(DType::i32))[i] = static_cast<std::int32_t>(i * 7919 % limit);
    }
    return buffer;
  }
};

template <class F>
void measure(benchmark::State& state, std::int64_t bytes, F f) {
  for (auto _ : state) {
    f();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

void triad(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kParameters, DType::f32);
  const Buffer y = b.filled(kParameters, DType::f32);
  const Buffer z = b.filled(kParameters, DType::f32);
  float* to = as<float>(x.view(DType::f32));
  const float* first = as<float>(y.view(DType::f32));
  const float* second = as<float>(z.view(DType::f32));
  measure(state, kParameters * 12, [&] {
#pragma omp parallel for num_threads(b.stream.threads()) schedule(static)
    for (std::int64_t i = 0; i < kParameters; ++i) {
      to[i] = first[i] + 0.5F * second[i];
    }
  });
}

void adamw(benchmark::State& state) {
  Bench b;
  const Buffer value = b.filled(kParameters, DType::f32);
  const Buffer m = b.filled(kParameters, DType::f32);
  const Buffer v = b.filled(kParameters, DType::f32);
  const Buffer gradient = b.filled(kParameters, DType::f32);
  const Buffer compute = b.filled(kParameters, DType::bf16);
  measure(state, kParameters * 30, [&] {
    b.kernels.adamw(b.stream, {.value = value.view(DType::f32),
                               .m = m.view(DType::f32),
                               .v = v.view(DType::f32),
                               .gradient = gradient.view(DType::f32),
                               .compute = compute.view(DType::bf16),
                               .step = 10,
                               .lr = 1e-9F});
  });
}

void sums_of_squares(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kParameters, DType::f32);
  std::vector<double> sums(kParameters / kSumBlock + 1);
  measure(state, kParameters * 4, [&] {
    b.kernels.sums_of_squares(b.stream, {sums.data(), std::ssize(sums), DType::f64},
                              x.view(DType::f32));
  });
}

void add(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kParameters, DType::f32);
  const Buffer y = b.filled(kParameters, DType::f32);
  measure(state, kParameters * 12,
          [&] { b.kernels.add(b.stream, y.view(DType::f32), x.view(DType::f32)); });
}

void cast(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kParameters, DType::f32);
  const Buffer y = b.filled(kParameters, DType::bf16);
  measure(state, kParameters * 6,
          [&] { b.kernels.cast(b.stream, y.view(DType::bf16), x.view(DType::f32)); });
}

void fill(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kParameters, DType::f32);
  measure(state, kParameters * 4, [&] { b.kernels.fill(b.stream, x.view(DType::f32), 0); });
}

void cross_entropy(benchmark::State& state) {
  Bench b;
  const Buffer logits = b.filled(kRows * kVocabulary, DType::bf16);
  const Buffer targets = b.ids(kRows, kVocabulary);
  const Buffer losses = b.filled(kRows, DType::f32);
  measure(state, kRows * kVocabulary * 4, [&] {
    b.kernels.cross_entropy(b.stream, {.rows = kRows,
                                       .vocabulary = kVocabulary,
                                       .logits = logits.view(DType::bf16),
                                       .targets = targets.view(DType::i32),
                                       .losses = losses.view(DType::f32),
                                       .scale = 1.0F / kRows});
  });
}

void layer_norm_forward(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kRows * kChannels, DType::bf16);
  const Buffer residual = b.filled(kRows * kChannels, DType::bf16);
  const Buffer sum = b.filled(kRows * kChannels, DType::bf16);
  const Buffer y = b.filled(kRows * kChannels, DType::bf16);
  const Buffer weight = b.filled(kChannels, DType::bf16);
  const Buffer moments = b.filled(2 * kRows, DType::f32);
  measure(state, kRows * kChannels * 8, [&] {
    b.kernels.layer_norm_forward(b.stream, {.rows = kRows,
                                            .channels = kChannels,
                                            .x = x.view(DType::bf16),
                                            .residual = residual.view(DType::bf16),
                                            .sum = sum.view(DType::bf16),
                                            .weight = weight.view(DType::bf16),
                                            .bias = weight.view(DType::bf16),
                                            .y = y.view(DType::bf16),
                                            .mean = moments.view(DType::f32).slice(0, kRows),
                                            .rstd = moments.view(DType::f32).slice(kRows, kRows)});
  });
}

void layer_norm_backward(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kRows * kChannels, DType::bf16);
  const Buffer dy = b.filled(kRows * kChannels, DType::bf16);
  const Buffer skip = b.filled(kRows * kChannels, DType::bf16);
  const Buffer dx = b.filled(kRows * kChannels, DType::bf16);
  const Buffer weight = b.filled(kChannels, DType::bf16);
  const Buffer moments = b.filled(2 * kRows, DType::f32);
  const Buffer grads = b.filled(2 * kChannels, DType::f32);
  measure(state, kRows * kChannels * 8, [&] {
    b.kernels.layer_norm_backward(b.stream,
                                  {.rows = kRows,
                                   .channels = kChannels,
                                   .dy = dy.view(DType::bf16),
                                   .x = x.view(DType::bf16),
                                   .weight = weight.view(DType::bf16),
                                   .mean = moments.view(DType::f32).slice(0, kRows),
                                   .rstd = moments.view(DType::f32).slice(kRows, kRows),
                                   .dresidual = skip.view(DType::bf16),
                                   .dx = dx.view(DType::bf16),
                                   .dweight = grads.view(DType::f32).slice(0, kChannels),
                                   .dbias = grads.view(DType::f32).slice(kChannels, kChannels)});
  });
}

void gelu_forward(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kRows * kChannels * 4, DType::bf16);
  const Buffer y = b.filled(kRows * kChannels * 4, DType::bf16);
  measure(state, kRows * kChannels * 16,
          [&] { b.kernels.gelu_forward(b.stream, y.view(DType::bf16), x.view(DType::bf16)); });
}

void gelu_backward(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kRows * kChannels * 4, DType::bf16);
  const Buffer dy = b.filled(kRows * kChannels * 4, DType::bf16);
  measure(state, kRows * kChannels * 24, [&] {
    b.kernels.gelu_backward(b.stream, dy.view(DType::bf16), dy.view(DType::bf16),
                            x.view(DType::bf16));
  });
}

void swiglu_backward(benchmark::State& state) {
  Bench b;
  const std::int64_t n = kRows * 2048;
  const Buffer all = b.filled(5 * n, DType::bf16);
  const auto part = [&](std::int64_t i) { return all.view(DType::bf16).slice(i * n, n); };
  measure(state, n * 10, [&] {
    b.kernels.swiglu_backward(b.stream, part(0), part(1), part(2), part(3), part(4));
  });
}

void dropout(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kRows * kChannels, DType::bf16);
  const Buffer y = b.filled(kRows * kChannels, DType::bf16);
  measure(state, kRows * kChannels * 4, [&] {
    b.kernels.dropout(b.stream, {.batch = 1,
                                 .elements_per_sample = kRows * kChannels,
                                 .probability = 0.1F,
                                 .x = x.view(DType::bf16),
                                 .y = y.view(DType::bf16)});
  });
}

void column_sum(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kRows * kChannels * 4, DType::bf16);
  const Buffer sum = b.filled(kChannels * 4, DType::f32);
  measure(state, kRows * kChannels * 8, [&] {
    b.kernels.column_sum(
        b.stream,
        {.m = kRows, .n = kChannels * 4, .x = x.view(DType::bf16), .sum = sum.view(DType::f32)});
  });
}

void rope(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(kRows * kChannels, DType::bf16);
  const Buffer frequency = b.filled(32, DType::f32);
  measure(state, kRows * kChannels * 4, [&] {
    b.kernels.rope(b.stream, {.batch = 1,
                              .time = kRows,
                              .heads = 12,
                              .head_dim = 64,
                              .stride = kChannels,
                              .x = x.view(DType::bf16),
                              .inverse_frequency = frequency.view(DType::f32)});
  });
}

void embedding_forward(benchmark::State& state) {
  Bench b;
  const Buffer ids = b.ids(kRows, kVocabulary);
  const Buffer token = b.filled(kVocabulary * kChannels, DType::bf16);
  const Buffer position = b.filled(kRows * kChannels, DType::bf16);
  const Buffer out = b.filled(kRows * kChannels, DType::bf16);
  measure(state, kRows * kChannels * 6, [&] {
    b.kernels.embedding_forward(b.stream, {.batch = 1,
                                           .time = kRows,
                                           .channels = kChannels,
                                           .out = out.view(DType::bf16),
                                           .ids = ids.view(DType::i32),
                                           .token = token.view(DType::bf16),
                                           .position = position.view(DType::bf16)});
  });
}

void embedding_backward(benchmark::State& state) {
  Bench b;
  const std::int64_t vocabulary = state.range(0);
  const Buffer ids = b.ids(kRows, vocabulary);
  const Buffer dout = b.filled(kRows * kChannels, DType::bf16);
  const Buffer dtoken = b.filled(vocabulary * kChannels, DType::f32);
  const Buffer dposition = b.filled(kRows * kChannels, DType::f32);
  measure(state, kRows * kChannels * 16, [&] {
    b.kernels.embedding_backward(b.stream, {.batch = 1,
                                            .time = kRows,
                                            .channels = kChannels,
                                            .dout = dout.view(DType::bf16),
                                            .ids = ids.view(DType::i32),
                                            .dtoken = dtoken.view(DType::f32),
                                            .dposition = dposition.view(DType::f32)});
  });
}

#define TRIREME_BENCHMARK(name) BENCHMARK(name)->Unit(benchmark::kMicrosecond)->UseRealTime()
TRIREME_BENCHMARK(triad);
TRIREME_BENCHMARK(adamw);
TRIREME_BENCHMARK(sums_of_squares);
TRIREME_BENCHMARK(add);
TRIREME_BENCHMARK(cast);
TRIREME_BENCHMARK(fill);
TRIREME_BENCHMARK(cross_entropy);
TRIREME_BENCHMARK(layer_norm_forward);
TRIREME_BENCHMARK(layer_norm_backward);
TRIREME_BENCHMARK(gelu_forward);
TRIREME_BENCHMARK(gelu_backward);
TRIREME_BENCHMARK(swiglu_backward);
TRIREME_BENCHMARK(dropout);
TRIREME_BENCHMARK(column_sum);
TRIREME_BENCHMARK(rope);
TRIREME_BENCHMARK(embedding_forward);
TRIREME_BENCHMARK(embedding_backward)->Arg(257)->Arg(50257);

}  // namespace
}  // namespace trireme

BENCHMARK_MAIN();
