#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "src/kernels/fp8.h"
#include "src/train/numerics/bench.h"

namespace trireme {
namespace {

// Upper bounds of the work and the weights of one product.
constexpr std::int64_t kMostOperations = 16'000'000;
constexpr std::int64_t kMostWeights = std::int64_t{1} << 18;
constexpr std::int64_t kFewestRows = 16;
// The grid of elements that are compared with the reference; at least two columns per thread.
constexpr std::int64_t kRows = 8;
constexpr std::int64_t kColumns = 32;

// Layer is a linear layer: y[rows, out] = x[rows, in] W (+ bias). stored_out_in: W is stored [out,
// in]. in_block: the run may multiply it in fp8.
struct Layer {
  const char* name;
  std::int64_t in;
  std::int64_t out;
  bool stored_out_in;
  bool bias;
  bool in_block = true;
};

std::vector<Layer> layers_of(const KernelShapes& s) {
  const std::int64_t queries = s.heads * s.head_dim;
  const std::int64_t all = queries + 2 * s.kv_heads * s.head_dim;
  return {{"attention input", s.channels, all, s.llama, !s.llama},
          {"attention output", queries, s.channels, s.llama, !s.llama},
          {"MLP input", s.channels, s.ffn, s.llama, !s.llama},
          {"MLP output", s.ffn, s.channels, s.llama, !s.llama},
          {"vocabulary", s.channels, s.vocabulary, true, false, false}};
}

// Returns up to `most` indices below `count`, evenly spread, including the first and the last.
std::vector<std::int64_t> spread(std::int64_t count, std::int64_t most) {
  const std::int64_t n = std::min(count, most);
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < n; ++i) {
    result.push_back(n == 1 ? 0 : i * (count - 1) / (n - 1));
  }
  return result;
}

// to[i, j] = from[rows[i], columns[j]]. from has rows of `width` elements, and is stored transposed
// if `transposed`.
template <class T>
void gather_as(const Tensor& to, const ConstView& from, std::int64_t width, bool transposed,
               const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns) {
  const T* const data = as<T>(from);
  T* at = as<T>(to.view());
  for (const std::int64_t row : rows) {
    for (const std::int64_t column : columns) {
      *at++ = data[transposed ? column * width + row : row * width + column];
    }
  }
}

void gather(const Tensor& to, const ConstView& from, std::int64_t width, bool transposed,
            const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& columns) {
  const auto gather_them = from.dtype == DType::bf16  ? gather_as<bf16>
                           : from.dtype == DType::f16 ? gather_as<f16>
                                                      : gather_as<float>;
  gather_them(to, from, width, transposed, rows, columns);
}

std::vector<std::int64_t> all_below(std::int64_t count) { return spread(count, count); }

// Compares the largest magnitude that the product found in an operand, and returns how the
// reference rounds a part of that operand. scale: f32 [1], which is set.
Fp8Operand checked_rounding(CheckBench& bench, const std::string& name, const ConstView& operand,
                            const Fp8Operand& how, const View& scale) {
  float most = 0;
  for (const float x : floats_of(operand)) {
    most = std::max(most, std::abs(x));
  }
  bench.compare(name + ", largest magnitude", how.most, ConstView{&most, 1, DType::f32});
  *as<float>(scale) = fp8_scale(most, how.format);
  return {how.format, scale, {}};
}

// Runs the product, whose C holds NaN, and compares a grid of elements of C.
void check_product(CheckBench& bench, const std::string& name, const Matmul& product) {
  bench.kernels.matmul(bench.stream, product);
  const Matmul& p = product;
  const std::vector<std::int64_t> rows = spread(p.m, kRows);
  const std::vector<std::int64_t> columns =
      spread(p.n, std::max<std::int64_t>(kColumns, 2 * bench.stream.threads()));
  const auto r = static_cast<std::int64_t>(rows.size());
  const auto c = static_cast<std::int64_t>(columns.size());
  const Tensor a = bench.unwritten(r * p.k, p.a.dtype);
  const Tensor b = bench.unwritten(p.k * c, p.b.dtype);
  const Tensor found = bench.unwritten(r * c, p.c.dtype);
  const Tensor expected = bench.unwritten(r * c, p.c.dtype);
  gather(a, p.a, p.transpose_a ? p.m : p.k, p.transpose_a, rows, all_below(p.k));
  gather(b, p.b, p.transpose_b ? p.k : p.n, p.transpose_b, all_below(p.k), columns);
  gather(found, p.c, p.n, false, rows, columns);
  Matmul sample;
  sample.m = r;
  sample.n = c;
  sample.k = p.k;
  sample.a = a.view();
  sample.b = b.view();
  sample.c = expected.view();
  Tensor bias;
  if (!p.bias.empty()) {
    bias = bench.unwritten(c, p.bias.dtype);
    gather(bias, p.bias, p.n, false, {0}, columns);
    sample.bias = bias.view();
  }
  const Tensor scales = bench.unwritten(2, DType::f32);
  if (p.fp8_a.format != Fp8Format::none) {
    sample.fp8_a = checked_rounding(bench, name, p.a, p.fp8_a, scales.view().slice(0, 1));
    sample.fp8_b = checked_rounding(bench, name, p.b, p.fp8_b, scales.view().slice(1, 1));
  }
  bench.reference.matmul(bench.stream, sample);
  bench.compare(name, found.view(), expected.view(), p.k);
  // An element outside the grid that no thread has written still holds NaN.
  bench.check_written(name, p.c);
}

// Runs a product; in fp8 if the formats of its operands are given.
void check_product(CheckBench& bench, const Layer& layer, const char* which, Matmul product,
                   std::pair<Fp8Format, Fp8Format> formats) {
  const Tensor most = bench.unwritten(2, DType::f32);
  std::fill_n(as<float>(most.view()), 2, 0.0F);
  const bool in_fp8 = formats.first != Fp8Format::none;
  if (in_fp8) {
    product.fp8_a = {formats.first, {}, most.view().slice(0, 1)};
    product.fp8_b = {formats.second, {}, most.view().slice(1, 1)};
  }
  check_product(bench, fmt::format("matmul ({}, {}{})", layer.name, which, in_fp8 ? ", fp8" : ""),
                product);
}

// Returns the largest number up to `count` that a product in fp8 takes as a size.
std::int64_t size_in_fp8(std::int64_t count) {
  constexpr std::int64_t kMultiple = 16;
  return std::max(kMultiple, count / kMultiple * kMultiple);
}

void check_layer(CheckBench& bench, Layer layer) {
  const KernelShapes& s = bench.shapes;
  const bool in_fp8 = s.fp8 && layer.in_block;
  const Fp8Format value = in_fp8 ? Fp8Format::e4m3 : Fp8Format::none;
  const Fp8Format slope = in_fp8 ? Fp8Format::e5m2 : Fp8Format::none;
  layer.out = std::clamp<std::int64_t>(kMostWeights / layer.in, 1, layer.out);
  layer.out = in_fp8 ? size_in_fp8(layer.out) : layer.out;
  const std::int64_t weights = layer.in * layer.out;
  std::int64_t rows = std::min(s.rows(), std::max(kFewestRows, kMostOperations / (2 * weights)));
  rows = in_fp8 ? size_in_fp8(rows) : rows;
  const Tensor x = bench.numbers(rows * layer.in, s.dtype, 1);
  const Tensor dy = bench.numbers(rows * layer.out, s.dtype, 2);
  const Tensor w = bench.numbers(weights, s.dtype, 3);
  const Tensor bias = bench.numbers(layer.out, s.dtype, 4);
  Matmul forward;
  forward.m = rows;
  forward.n = layer.out;
  forward.k = layer.in;
  forward.a = x.view();
  forward.b = w.view();
  forward.transpose_b = layer.stored_out_in;
  const Tensor y = bench.unwritten(rows * layer.out, s.dtype);
  forward.c = y.view();
  forward.bias = layer.bias ? ConstView(bias.view()) : ConstView();
  check_product(bench, layer, "forward", forward, {value, value});

  Matmul input;
  input.m = rows;
  input.n = layer.in;
  input.k = layer.out;
  input.a = dy.view();
  input.b = w.view();
  input.transpose_b = !layer.stored_out_in;
  const Tensor dx = bench.unwritten(rows * layer.in, s.dtype);
  input.c = dx.view();
  check_product(bench, layer, "input gradient", input, {slope, value});

  Matmul weight;
  weight.m = layer.stored_out_in ? layer.out : layer.in;
  weight.n = layer.stored_out_in ? layer.in : layer.out;
  weight.k = rows;
  weight.a = layer.stored_out_in ? dy.view() : x.view();
  weight.b = layer.stored_out_in ? x.view() : dy.view();
  weight.transpose_a = true;
  const Tensor dw = bench.unwritten(weights, DType::f32);
  weight.c = dw.view();
  check_product(bench, layer, "weight gradient", weight,
                layer.stored_out_in ? std::pair(slope, value) : std::pair(value, slope));
}

}  // namespace

void check_products(CheckBench& bench) {
  for (const Layer& layer : layers_of(bench.shapes)) {
    check_layer(bench, layer);
  }
}

}  // namespace trireme
