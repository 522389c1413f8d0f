#include <algorithm>

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
// in].
struct Layer {
  const char* name;
  std::int64_t in;
  std::int64_t out;
  bool stored_out_in;
  bool bias;
};

std::vector<Layer> layers_of(const KernelShapes& s) {
  const std::int64_t queries = s.heads * s.head_dim;
  const std::int64_t all = queries + 2 * s.kv_heads * s.head_dim;
  return {{"attention input", s.channels, all, s.llama, !s.llama},
          {"attention output", queries, s.channels, s.llama, !s.llama},
          {"MLP input", s.channels, s.ffn, s.llama, !s.llama},
          {"MLP output", s.ffn, s.channels, s.llama, !s.llama},
          {"vocabulary", s.channels, s.vocabulary, true, false}};
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
  (from.dtype == DType::bf16 ? gather_as<bf16> : gather_as<float>)(to, from, width, transposed,
                                                                   rows, columns);
}

std::vector<std::int64_t> all_below(std::int64_t count) { return spread(count, count); }

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
  bench.reference.matmul(bench.stream, sample);
  bench.compare(name, found.view(), expected.view(), p.k);
  // An element outside the grid that no thread has written still holds NaN.
  bench.check_written(name, p.c);
}

}  // namespace

void check_products(CheckBench& bench) {
  const KernelShapes& s = bench.shapes;
  for (const Layer& whole : layers_of(s)) {
    Layer layer = whole;
    layer.out = std::clamp<std::int64_t>(kMostWeights / layer.in, 1, layer.out);
    const std::int64_t weights = layer.in * layer.out;
    const std::int64_t rows =
        std::min(s.rows(), std::max(kFewestRows, kMostOperations / (2 * weights)));
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
    check_product(bench, std::string("matmul (") + layer.name + ", forward)", forward);

    Matmul input;
    input.m = rows;
    input.n = layer.in;
    input.k = layer.out;
    input.a = dy.view();
    input.b = w.view();
    input.transpose_b = !layer.stored_out_in;
    const Tensor dx = bench.unwritten(rows * layer.in, s.dtype);
    input.c = dx.view();
    check_product(bench, std::string("matmul (") + layer.name + ", input gradient)", input);

    Matmul weight;
    weight.m = layer.stored_out_in ? layer.out : layer.in;
    weight.n = layer.stored_out_in ? layer.in : layer.out;
    weight.k = rows;
    weight.a = layer.stored_out_in ? dy.view() : x.view();
    weight.b = layer.stored_out_in ? x.view() : dy.view();
    weight.transpose_a = true;
    const Tensor dw = bench.unwritten(weights, DType::f32);
    weight.c = dw.view();
    check_product(bench, std::string("matmul (") + layer.name + ", weight gradient)", weight);
  }
}

}  // namespace trireme
