// Computes matrix products through oneDNN (cpu/product.h), either whole or in tiles, each of which
// one thread computes. The choice depends on the shape alone, so that the bits are the same for any
// number of threads. If the processor has no bf16 product, tiles are widened to f32 first. The GELU
// epilogues are a separate pass.
#include <exception>

#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/vector.h"
#include "src/kernels/cpu/product.h"
#include "src/kernels/cpu/scratch.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// Copies [rows, columns] with conversion between f32 and bf16 and between leading dimensions.
template <class To, class From>
void convert(To* to, std::int64_t to_ld, const From* from, std::int64_t from_ld, std::int64_t rows,
             std::int64_t columns) {
  for (std::int64_t row = 0; row < rows; ++row) {
    To* const y = to + row * to_ld;
    const From* const x = from + row * from_ld;
    std::int64_t i = 0;
    for (; i + kLanes <= columns; i += kLanes) {
      store(y + i, load(x + i));
    }
    if (i < columns) {
      store_part(y + i, load_part(x + i, columns - i), columns - i);
    }
  }
}

// Part is the part of C that one product computes.
struct Part {
  std::int64_t row, column, rows, columns;
  int threads;
};

// The largest dimension of a product that is computed whole. Beyond it, oneDNN's packed copies no
// longer fit into the caches: with GPT-2's vocabulary, a whole product reaches 0.75 of the rate of
// 2048^3, and tiles reach 0.95.
constexpr std::int64_t kWholeSide = 4096;
// From these sizes on, a transposed A in bf16 (weight gradients) and a long K in f32 are a tenth
// faster in tiles.
constexpr std::int64_t kTiledGradient = 3 * 512 * 1024;
constexpr std::int64_t kTiledDepth = 2048;
// The longest K that a tile sums at once.
constexpr std::int64_t kTileDepth = 4096;

// Returns the size of about equal blocks of at most `most`, rounded up to a multiple of 64.
std::int64_t block_of(std::int64_t whole, std::int64_t most) {
  const std::int64_t blocks = (whole + most - 1) / most;
  return blocks <= 1 ? whole : ((whole + blocks - 1) / blocks + 63) / 64 * 64;
}

Product product_of(const Matmul& p, const Part& part, std::int64_t depth) {
  return {.m = part.rows,
          .n = part.columns,
          .k = depth,
          .lda = p.row_of_a(),
          .ldb = p.row_of_b(),
          .ldc = p.row_of_c(),
          .transpose_a = p.transpose_a,
          .transpose_b = p.transpose_b,
          .bias = !p.bias.empty(),
          .accumulate = p.accumulate,
          .type = p.a.dtype,
          .out = p.c.dtype,
          .threads = part.threads};
}

bool is_tiled(const Matmul& p, int threads) {
  const bool wide = p.a.dtype == DType::f32;
  if (p.m > kWholeSide || p.n > kWholeSide || !has_product(p.a.dtype)) {
    return true;
  }
  if (p.transpose_a ? !wide && p.m * p.n > kTiledGradient
                    : p.k > (wide && !p.transpose_b ? kTiledDepth : kWholeSide)) {
    return true;
  }
  const std::int64_t depth = p.transpose_a ? block_of(p.k, kTransposedK) : p.k;
  return !keeps_order(product_of(p, {0, 0, p.m, p.n, threads}, depth));
}

const char* at(const ConstView& matrix, std::int64_t row, std::int64_t column, std::int64_t ld) {
  return static_cast<const char*>(matrix.data) + (row * ld + column) * size_of(matrix.dtype);
}

// Returns a dense f32 copy of the stored rows and columns of an operand's block.
const void* widened(Scratch slot, const void* from, std::int64_t ld, std::int64_t rows,
                    std::int64_t columns) {
  auto* const wide = static_cast<float*>(scratch(slot, rows * columns * 4));
  convert(wide, columns, static_cast<const bf16*>(from), ld, rows, columns);
  return wide;
}

void widen_operands(Product& product, const void*& a, const void*& b, const void*& bias) {
  const std::int64_t m = product.m;
  const std::int64_t n = product.n;
  const std::int64_t k = product.k;
  a = product.transpose_a ? widened(Scratch::a, a, product.lda, k, m)
                          : widened(Scratch::a, a, product.lda, m, k);
  b = product.transpose_b ? widened(Scratch::b, b, product.ldb, n, k)
                          : widened(Scratch::b, b, product.ldb, k, n);
  product.lda = product.transpose_a ? m : k;
  product.ldb = product.transpose_b ? k : n;
  if (bias != nullptr) {
    bias = widened(Scratch::bias, bias, n, 1, n);
  }
  product.type = DType::f32;
}

// Computes one part of C over all of K, `depth` at a time. If C is bf16 and K takes several
// products, or if there is no bf16 product, the sum is accumulated in f32 and rounded once.
void run_part(const Matmul& p, const Part& part, std::int64_t depth) {
  const bool widen = !has_product(p.a.dtype);
  const bool narrow = p.c.dtype == DType::bf16 && (widen || p.k > depth);
  Product product = product_of(p, part, depth);
  const std::int64_t lda = product.lda;
  const std::int64_t ldb = product.ldb;
  char* const c =
      static_cast<char*>(p.c.data) + (part.row * p.row_of_c() + part.column) * size_of(p.c.dtype);
  void* const sum = narrow ? scratch(Scratch::c, part.rows * part.columns * 4) : c;
  if (narrow) {
    product.ldc = part.columns;
    product.out = DType::f32;
  }
  for (std::int64_t k0 = 0; k0 < p.k; k0 += depth) {
    const void* a = p.transpose_a ? at(p.a, k0, part.row, lda) : at(p.a, part.row, k0, lda);
    const void* b = p.transpose_b ? at(p.b, part.column, k0, ldb) : at(p.b, k0, part.column, ldb);
    const void* bias = k0 == 0 && !p.bias.empty() ? at(p.bias, 0, part.column, 0) : nullptr;
    Product step = product;
    step.k = p.k - k0 < depth ? p.k - k0 : depth;
    step.bias = bias != nullptr;
    step.accumulate = k0 > 0 || p.accumulate;
    if (widen) {
      widen_operands(step, a, b, bias);
    }
    run_product(step, a, b, bias, sum);
  }
  if (narrow) {
    convert(reinterpret_cast<bf16*>(c), p.row_of_c(), static_cast<const float*>(sum), part.columns,
            part.rows, part.columns);
  }
}

// Computes C in tiles that start at multiples of their size, each summed by one thread in the order
// of K. A large C takes larger tiles, which copy less.
void run_tiles(const Matmul& p, int threads) {
  const bool large = p.m * p.n > 16 * 512 * 768;
  const std::int64_t rows = block_of(p.m, large ? 512 : 256);
  const std::int64_t columns = block_of(p.n, large ? 768 : 384);
  const std::int64_t depth = block_of(p.k, kTileDepth);
  const std::int64_t across = (p.n + columns - 1) / columns;
  const std::int64_t tiles = across * ((p.m + rows - 1) / rows);
  std::exception_ptr failure;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    Part part{tile / across * rows, tile % across * columns, rows, columns, 1};
    part.rows = part.row + rows > p.m ? p.m - part.row : rows;
    part.columns = part.column + columns > p.n ? p.n - part.column : columns;
    try {
      run_part(p, part, depth);
    } catch (...) {
#pragma omp critical(trireme_matmul_failure)
      failure = std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

void run(Stream& stream, const Matmul& p) {
  if (p.m == 0 || p.n == 0) {
    return;
  }
  if (is_tiled(p, stream.threads())) {
    run_tiles(p, stream.threads());
  } else {
    run_part(p, {0, 0, p.m, p.n, stream.threads()},
             p.transpose_a ? block_of(p.k, kTransposedK) : p.k);
  }
}

}  // namespace

void matmul(Stream& stream, const Matmul& p) {
  check(p.a.dtype == p.b.dtype && (p.c.dtype == p.a.dtype || p.c.dtype == DType::f32),
        "a product is T x T -> T or f32");
  check(!p.accumulate || (p.c.dtype == DType::f32 && p.epilogue == Epilogue::none),
        "a product is added to f32 without an epilogue");
  check(p.m >= 0 && p.n >= 0 && p.k > 0, "a product has a shape");
  check(p.pitch_c == 0 || (p.bias.empty() && p.epilogue == Epilogue::none),
        "results with a bias or an epilogue are dense");
  if (p.epilogue == Epilogue::gelu) {
    Matmul before = p;
    before.c = p.aux;
    run(stream, before);
    gelu_forward(stream, p.c, p.aux);
    return;
  }
  run(stream, p);
  if (p.epilogue == Epilogue::gelu_backward) {
    gelu_backward(stream, p.c, p.c, p.aux);
  }
}

}  // namespace trireme::cpu::TRIREME_ISA
