// Measures how close the kernels that memory bounds come to the rate of the device's memory: the
// CPU, or with --device=cuda a GPU. Each runs at the shapes of GPT-2 124M (C = 768, V = 50257, 124M
// parameters) and prints the bytes per second of the traffic that its arguments imply. The ceiling
// of the same run is `copy`, or on the CPU `triad`, a[i] = b[i] + s c[i] over 1.5 GB
// (write-allocate traffic not counted, as in STREAM).
//
//   kernels_benchmark --benchmark_filter=adamw --benchmark_repetitions=5
//   kernels_benchmark --device=cuda --benchmark_format=json
//
// A simulated device refuses, except with --simulated, which a test of the benchmarks gives.
// TRIREME_KERNELS selects the CPU's kernel table, OMP_NUM_THREADS the number of threads.
#include <cstdio>
#include <string_view>

#include <omp.h>

#include "benchmarks/kernels/bench.h"
#include "src/base/error.h"
#include "src/compute/device_choice.h"

namespace trireme {
namespace {

constexpr std::int64_t kChannels = 768;
constexpr std::int64_t kVocabulary = 50257;

void triad(benchmark::State& state) {
  if (!measured_device().is_host()) {
    state.SkipWithError("runs on the CPU only");
    return;
  }
  Bench b;
  const Buffer x = b.filled(b.sizes.parameters, DType::f32);
  const Buffer y = b.filled(b.sizes.parameters, DType::f32);
  const Buffer z = b.filled(b.sizes.parameters, DType::f32);
  float* to = as<float>(x.view(DType::f32));
  const float* first = as<float>(y.view(DType::f32));
  const float* second = as<float>(z.view(DType::f32));
  b.measure(state, b.sizes.parameters * 12, [&] {
#pragma omp parallel for num_threads(b.stream.threads()) schedule(static)
    for (std::int64_t i = 0; i < b.sizes.parameters; ++i) {
      to[i] = first[i] + 0.5F * second[i];
    }
  });
}

void adamw(benchmark::State& state) {
  Bench b;
  const Buffer value = b.filled(b.sizes.parameters, DType::f32);
  const Buffer m = b.filled(b.sizes.parameters, DType::f32);
  const Buffer v = b.filled(b.sizes.parameters, DType::f32);
  const Buffer gradient = b.filled(b.sizes.parameters, DType::f32);
  const Buffer compute = b.filled(b.sizes.parameters, DType::bf16);
  b.measure(state, b.sizes.parameters * 30, [&] {
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
  const Buffer x = b.filled(b.sizes.parameters, DType::f32);
  const Buffer sums = b.filled(2 * (b.sizes.parameters / kSumBlock + 1), DType::f32);
  b.measure(state, b.sizes.parameters * 4, [&] {
    b.kernels.sums_of_squares(b.stream, sums.view(DType::f64), x.view(DType::f32));
  });
}

void add(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.parameters, DType::f32);
  const Buffer y = b.filled(b.sizes.parameters, DType::f32);
  b.measure(state, b.sizes.parameters * 12,
            [&] { b.kernels.add(b.stream, y.view(DType::f32), x.view(DType::f32)); });
}

void cast(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.parameters, DType::f32);
  const Buffer y = b.filled(b.sizes.parameters, DType::bf16);
  b.measure(state, b.sizes.parameters * 6,
            [&] { b.kernels.cast(b.stream, y.view(DType::bf16), x.view(DType::f32)); });
}

void fill(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.parameters, DType::f32);
  b.measure(state, b.sizes.parameters * 4,
            [&] { b.kernels.fill(b.stream, x.view(DType::f32), 0); });
}

void cross_entropy(benchmark::State& state) {
  Bench b;
  // As in training on a GPU, rows are aligned.
  const std::int64_t pitch = aligned_row(kVocabulary);
  const Buffer logits = b.filled(b.sizes.logit_rows * pitch, DType::bf16);
  const Buffer targets = b.ids(b.sizes.logit_rows, kVocabulary);
  const Buffer losses = b.filled(b.sizes.logit_rows, DType::f32);
  b.measure(state, b.sizes.logit_rows * kVocabulary * 4, [&] {
    b.kernels.cross_entropy(b.stream, {.rows = b.sizes.logit_rows,
                                       .vocabulary = kVocabulary,
                                       .pitch = pitch,
                                       .logits = logits.view(DType::bf16),
                                       .targets = targets.view(DType::i32),
                                       .losses = losses.view(DType::f32),
                                       .scale = 1e-3F});
  });
}

void layer_norm_forward(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer residual = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer sum = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer y = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer weight = b.filled(kChannels, DType::bf16);
  const Buffer moments = b.filled(2 * b.sizes.rows, DType::f32);
  b.measure(state, b.sizes.rows * kChannels * 8, [&] {
    b.kernels.layer_norm_forward(
        b.stream, {.rows = b.sizes.rows,
                   .channels = kChannels,
                   .x = x.view(DType::bf16),
                   .residual = residual.view(DType::bf16),
                   .sum = sum.view(DType::bf16),
                   .weight = weight.view(DType::bf16),
                   .bias = weight.view(DType::bf16),
                   .y = y.view(DType::bf16),
                   .mean = moments.view(DType::f32).slice(0, b.sizes.rows),
                   .rstd = moments.view(DType::f32).slice(b.sizes.rows, b.sizes.rows)});
  });
}

void layer_norm_backward(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer dy = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer skip = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer dx = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer weight = b.filled(kChannels, DType::bf16);
  const Buffer moments = b.filled(2 * b.sizes.rows, DType::f32);
  const Buffer grads = b.filled(2 * kChannels, DType::f32);
  b.measure(state, b.sizes.rows * kChannels * 8, [&] {
    b.kernels.layer_norm_backward(
        b.stream, {.rows = b.sizes.rows,
                   .channels = kChannels,
                   .dy = dy.view(DType::bf16),
                   .x = x.view(DType::bf16),
                   .weight = weight.view(DType::bf16),
                   .mean = moments.view(DType::f32).slice(0, b.sizes.rows),
                   .rstd = moments.view(DType::f32).slice(b.sizes.rows, b.sizes.rows),
                   .dresidual = skip.view(DType::bf16),
                   .dx = dx.view(DType::bf16),
                   .dweight = grads.view(DType::f32).slice(0, kChannels),
                   .dbias = grads.view(DType::f32).slice(kChannels, kChannels)});
  });
}

void gelu_forward(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.rows * kChannels * 4, DType::bf16);
  const Buffer y = b.filled(b.sizes.rows * kChannels * 4, DType::bf16);
  b.measure(state, b.sizes.rows * kChannels * 16,
            [&] { b.kernels.gelu_forward(b.stream, y.view(DType::bf16), x.view(DType::bf16)); });
}

void gelu_backward(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.rows * kChannels * 4, DType::bf16);
  const Buffer dy = b.filled(b.sizes.rows * kChannels * 4, DType::bf16);
  b.measure(state, b.sizes.rows * kChannels * 24, [&] {
    b.kernels.gelu_backward(b.stream, dy.view(DType::bf16), dy.view(DType::bf16),
                            x.view(DType::bf16));
  });
}

void swiglu_backward(benchmark::State& state) {
  Bench b;
  const std::int64_t n = b.sizes.rows * 2048;
  const Buffer all = b.filled(5 * n, DType::bf16);
  const auto part = [&](std::int64_t i) { return all.view(DType::bf16).slice(i * n, n); };
  b.measure(state, n * 10, [&] {
    b.kernels.swiglu_backward(b.stream, part(0), part(1), part(2), part(3), part(4));
  });
}

void dropout(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer y = b.filled(b.sizes.rows * kChannels, DType::bf16);
  b.measure(state, b.sizes.rows * kChannels * 4, [&] {
    b.kernels.dropout(b.stream, {.batch = 1,
                                 .elements_per_sample = b.sizes.rows * kChannels,
                                 .probability = 0.1F,
                                 .x = x.view(DType::bf16),
                                 .y = y.view(DType::bf16)});
  });
}

void column_sum(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.rows * kChannels * 4, DType::bf16);
  const Buffer sum = b.filled(kChannels * 4, DType::f32);
  b.measure(state, b.sizes.rows * kChannels * 8, [&] {
    b.kernels.column_sum(b.stream, {.m = b.sizes.rows,
                                    .n = kChannels * 4,
                                    .x = x.view(DType::bf16),
                                    .sum = sum.view(DType::f32)});
  });
}

void rope(benchmark::State& state) {
  Bench b;
  const Buffer x = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer frequency = b.filled(32, DType::f32);
  b.measure(state, b.sizes.rows * kChannels * 4, [&] {
    b.kernels.rope(b.stream, {.batch = 1,
                              .time = b.sizes.rows,
                              .heads = 12,
                              .head_dim = 64,
                              .stride = kChannels,
                              .x = x.view(DType::bf16),
                              .inverse_frequency = frequency.view(DType::f32)});
  });
}

void embedding_forward(benchmark::State& state) {
  Bench b;
  const Buffer ids = b.ids(b.sizes.rows, kVocabulary);
  const Buffer token = b.filled(kVocabulary * kChannels, DType::bf16);
  const Buffer position = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer out = b.filled(b.sizes.rows * kChannels, DType::bf16);
  b.measure(state, b.sizes.rows * kChannels * 6, [&] {
    b.kernels.embedding_forward(b.stream, {.batch = 1,
                                           .time = b.sizes.rows,
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
  const Buffer ids = b.ids(b.sizes.rows, vocabulary);
  const Buffer dout = b.filled(b.sizes.rows * kChannels, DType::bf16);
  const Buffer dtoken = b.filled(vocabulary * kChannels, DType::f32);
  const Buffer dposition = b.filled(b.sizes.rows * kChannels, DType::f32);
  b.measure(state, b.sizes.rows * kChannels * 16, [&] {
    b.kernels.embedding_backward(b.stream, {.batch = 1,
                                            .time = b.sizes.rows,
                                            .channels = kChannels,
                                            .dout = dout.view(DType::bf16),
                                            .ids = ids.view(DType::i32),
                                            .dtoken = dtoken.view(DType::f32),
                                            .dposition = dposition.view(DType::f32)});
  });
}

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

// Obeys --device=cpu, --device=cuda and --simulated and removes them from the arguments. Returns
// whether a simulated device may run the benchmarks, which a test of them asks for.
bool take_device(int& argc, char** argv) {
  bool may_be_simulated = false;
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--device=cuda") {
      measured_device() = {DeviceKind::cuda, 0};
    } else if (word == "--simulated") {
      may_be_simulated = true;
    } else if (word != "--device=cpu") {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return may_be_simulated;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  const bool may_be_simulated = trireme::take_device(argc, argv);
  if (trireme::is_simulated() && !may_be_simulated) {
    std::fprintf(stderr,
                 "kernels_benchmark: a simulated device has no speed: measure a GPU with the "
                 "program of the preset cuda, or try the benchmarks themselves with --simulated\n");
    return 2;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 2;
  }
  try {
    const trireme::Device device = trireme::measured_device();
    benchmark::AddCustomContext("device", trireme::device_text(device));
    benchmark::RunSpecifiedBenchmarks();
  } catch (const trireme::Error& error) {
    std::fprintf(stderr, "kernels_benchmark: %s\n", error.what());
    return static_cast<int>(error.exit_code());
  }
  return 0;
}
