// Checks kernels that work element by element: activations, dropout, optimizers, sums of gradients.
#include <algorithm>

#include "src/train/numerics/bench.h"

namespace trireme {
namespace {

// Enough elements for two threads, with a remainder that does not fill a vector.
constexpr std::int64_t kCount = 16640 + 7;
// The elements between these two numbers do not decay.
constexpr std::int64_t kTurns[] = {4099, 9001};

// Returns the type of working copies of f32 weights, which fp32 runs do not have.
DType copy_type(const CheckBench& bench) {
  return bench.dtype() == DType::f32 ? DType::bf16 : bench.dtype();
}

void check_activation(CheckBench& bench) {
  const DType type = bench.dtype();
  const Tensor x = bench.numbers(kCount, type, 1);
  const Tensor up = bench.numbers(kCount, type, 2);
  const Tensor dy = bench.numbers(kCount, type, 3);
  const auto run = [&](const Kernels& table) {
    std::vector<Tensor> made;
    for (int i = 0; i < 3; ++i) {
      made.push_back(bench.unwritten(kCount, type));
    }
    if (bench.shapes.has_gated_mlp()) {
      table.swiglu_forward(bench.stream, made[0].view(), x.view(), up.view());
      table.swiglu_backward(bench.stream, made[1].view(), made[2].view(), dy.view(), x.view(),
                            up.view());
    } else {
      table.gelu_forward(bench.stream, made[0].view(), x.view());
      table.gelu_backward(bench.stream, made[1].view(), dy.view(), x.view());
    }
    return made;
  };
  const std::vector<Tensor> found = run(bench.kernels);
  const std::vector<Tensor> expected = run(bench.reference);
  const std::string name = bench.shapes.has_gated_mlp() ? "swiglu" : "gelu";
  bench.compare(name + "_forward", found[0].view(), expected[0].view());
  bench.compare(name + "_backward", found[1].view(), expected[1].view());
  if (bench.shapes.has_gated_mlp()) {
    bench.compare(name + "_backward (up)", found[2].view(), expected[2].view());
  }
}

void check_dropout(CheckBench& bench) {
  const Tensor x = bench.numbers(kCount, bench.dtype(), 1);
  const auto run = [&](const Kernels& table) {
    Tensor y = bench.unwritten(kCount, bench.dtype());
    Dropout p;
    p.batch = 1;
    p.elements_per_sample = kCount;
    p.seed = 1;
    p.probability = bench.shapes.dropout;
    p.x = x.view();
    p.y = y.view();
    table.dropout(bench.stream, p);
    return y;
  };
  bench.compare("dropout", run(bench.kernels).view(), run(bench.reference).view());
}

void check_adamw(CheckBench& bench) {
  const Tensor gradient = bench.numbers(kCount, DType::f32, 1);
  // Second moments are not negative.
  const Tensor second = bench.numbers(kCount, DType::f32, 2);
  for (std::int64_t i = 0; i < kCount; ++i) {
    as<float>(second.view())[i] *= as<float>(second.view())[i];
  }
  const auto run = [&](const Kernels& table) {
    std::vector<Tensor> made = {bench.numbers(kCount, DType::f32, 3),
                                bench.numbers(kCount, DType::f32, 4), bench.copy(second),
                                bench.unwritten(kCount, copy_type(bench))};
    AdamW p;
    p.value = made[0].view();
    p.m = made[1].view();
    p.v = made[2].view();
    p.gradient = gradient.view();
    p.compute = made[3].view();
    p.step = 10;
    p.lr = 1e-3F;
    p.weight_decay = 0.1F;
    p.turns = kTurns;
    table.adamw(bench.stream, p);
    return made;
  };
  const std::vector<Tensor> found = run(bench.kernels);
  const std::vector<Tensor> expected = run(bench.reference);
  const char* const names[] = {"adamw (weights)", "adamw (first moments)", "adamw (second moments)",
                               "adamw (working copy)"};
  for (std::size_t i = 0; i < found.size(); ++i) {
    bench.compare(names[i], found[i].view(), expected[i].view());
  }
}

void check_sgd(CheckBench& bench) {
  const Tensor gradient = bench.numbers(kCount, DType::f32, 1);
  const auto run = [&](const Kernels& table, bool nesterov) {
    std::vector<Tensor> made = {bench.numbers(kCount, DType::f32, 3),
                                bench.numbers(kCount, DType::f32, 4),
                                bench.unwritten(kCount, copy_type(bench))};
    Sgd p;
    p.value = made[0].view();
    p.buffer = made[1].view();
    p.gradient = gradient.view();
    p.compute = made[2].view();
    p.lr = 1e-3F;
    p.nesterov = nesterov;
    p.weight_decay = 0.1F;
    p.turns = kTurns;
    table.sgd(bench.stream, p);
    return made;
  };
  const char* const names[] = {"sgd (weights)", "sgd (momentum)", "sgd (working copy)"};
  for (const bool nesterov : {false, true}) {
    const std::vector<Tensor> found = run(bench.kernels, nesterov);
    const std::vector<Tensor> expected = run(bench.reference, nesterov);
    for (std::size_t i = 0; i < found.size(); ++i) {
      bench.compare(names[i], found[i].view(), expected[i].view());
    }
  }
}

void check_average(CheckBench& bench) {
  const Tensor value = bench.numbers(kCount, DType::f32, 1);
  const auto run = [&](const Kernels& table) {
    Tensor average = bench.numbers(kCount, DType::f32, 2);
    table.moving_average(bench.stream, {average.view(), value.view(), 0.9F});
    return average;
  };
  bench.compare("moving_average", run(bench.kernels).view(), run(bench.reference).view());
}

void check_kept_zeros(CheckBench& bench) {
  const Tensor x = bench.numbers(kCount, DType::f32, 1);
  const Tensor y = bench.copy(x);
  for (std::int64_t i = 0; i < kCount; i += 3) {
    as<float>(y.view())[i] = 0;
  }
  const auto run = [&](const Kernels& table) {
    Tensor kept = bench.copy(x);
    table.zero_where_zero(bench.stream, kept.view(), y.view());
    return kept;
  };
  bench.compare("zero_where_zero", run(bench.kernels).view(), run(bench.reference).view());
}

void check_scale(CheckBench& bench) {
  const Tensor x = bench.numbers(kCount, bench.dtype(), 1);
  const auto run = [&](const Kernels& table) {
    Tensor scaled = bench.copy(x);
    table.scale(bench.stream, scaled.view(), 0.3F);
    return scaled;
  };
  bench.compare("scale", run(bench.kernels).view(), run(bench.reference).view());
}

// Checks squares of gradients, sums of two and of several, and conversion.
void check_sums(CheckBench& bench) {
  const Tensor x = bench.numbers(kCount, DType::f32, 1);
  const Tensor z = bench.numbers(kCount, DType::f32, 2);
  constexpr std::int64_t kBlocks = (kCount + kSumBlock - 1) / kSumBlock;
  const auto run = [&](const Kernels& table) {
    const Tensor squares = bench.unwritten(kBlocks, DType::f64);
    table.sums_of_squares(bench.stream, squares.view(), x.view());
    std::vector<Tensor> made = {bench.unwritten(kBlocks, DType::f32), bench.copy(x), bench.copy(x),
                                bench.unwritten(kCount, copy_type(bench)),
                                bench.unwritten(kCount, DType::f32)};
    std::copy_n(as<double>(squares.view()), kBlocks, as<float>(made[0].view()));
    table.add(bench.stream, made[1].view(), z.view());
    const ConstView addends[] = {z.view(), x.view(), z.view()};
    table.add_chain(bench.stream, made[2].view(), addends, 3);
    table.cast(bench.stream, made[3].view(), x.view());
    table.fill(bench.stream, made[4].view(), 0.1F);
    return made;
  };
  const std::vector<Tensor> found = run(bench.kernels);
  const std::vector<Tensor> expected = run(bench.reference);
  const char* const names[] = {"sums_of_squares", "add", "add_chain", "cast", "fill"};
  for (std::size_t i = 0; i < found.size(); ++i) {
    bench.compare(names[i], found[i].view(), expected[i].view());
  }
}

}  // namespace

void check_elements(CheckBench& bench) {
  check_activation(bench);
  if (bench.shapes.dropout > 0) {
    check_dropout(bench);
  }
  if (bench.shapes.sgd) {
    check_sgd(bench);
  } else {
    check_adamw(bench);
  }
  if (bench.shapes.averages) {
    check_average(bench);
  }
  if (bench.shapes.keeps_zeros) {
    check_kept_zeros(bench);
  }
  if (bench.shapes.scaled) {
    check_scale(bench);
  }
  check_sums(bench);
}

}  // namespace trireme
