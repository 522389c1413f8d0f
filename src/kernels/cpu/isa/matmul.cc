// Matrix products: cut into blocks by a rule that depends on the shape alone, run by oneDNN
// (cpu/product.h), and the GELU epilogues as a pass of their own. Where the processor has no bf16
// product, the blocks are widened to f32 first.
#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/vector.h"
#include "src/kernels/cpu/product.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// [rows, columns] of some leading dimension <-> dense or strided f32.
template <class To, class From>
void convert(To* to, std::int64_t to_ld, const From* from, std::int64_t from_ld, std::int64_t rows,
             std::int64_t columns, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
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

struct Block {
  std::int64_t m0, n0, m, n;
};

// The length of the blocks that a side is cut into: about equal, multiples of 64.
std::int64_t block_of(std::int64_t whole, std::int64_t most) {
  const std::int64_t blocks = (whole + most - 1) / most;
  return blocks <= 1 ? whole : ((whole + blocks - 1) / blocks + 63) / 64 * 64;
}

std::int64_t depth_of(const Matmul& p) {
  const std::int64_t plain = p.a.dtype == DType::f32 ? kPlainKOfF32 : kPlainK;
  return block_of(p.k, p.transpose_a ? kTransposedK : plain);
}

const char* at(const ConstView& matrix, std::int64_t row, std::int64_t column, std::int64_t ld) {
  return static_cast<const char*>(matrix.data) + (row * ld + column) * size_of(matrix.dtype);
}

// The stored rows and columns of an operand's block, widened to f32, dense.
const void* widened(Scratch slot, const void* from, std::int64_t ld, std::int64_t rows,
                    std::int64_t columns, int threads) {
  auto* const wide = static_cast<float*>(scratch(slot, rows * columns * 4));
  convert(wide, columns, static_cast<const bf16*>(from), ld, rows, columns, threads);
  return wide;
}

void widen_operands(Product& product, const void*& a, const void*& b, const void*& bias) {
  const auto [m, n, k] = std::tuple(product.m, product.n, product.k);
  const int threads = product.threads;
  a = product.transpose_a ? widened(Scratch::a, a, product.lda, k, m, threads)
                          : widened(Scratch::a, a, product.lda, m, k, threads);
  b = product.transpose_b ? widened(Scratch::b, b, product.ldb, n, k, threads)
                          : widened(Scratch::b, b, product.ldb, k, n, threads);
  product.lda = product.transpose_a ? m : k;
  product.ldb = product.transpose_b ? k : n;
  if (bias != nullptr) {
    bias = widened(Scratch::bias, bias, n, 1, n, threads);
  }
  product.type = DType::f32;
}

// One block of C over all of K. Where C is bf16 and K takes several products, or there is no bf16
// product, the sum is built in f32 and rounded once.
void run_block(const Matmul& p, const Block& block, int threads) {
  const std::int64_t depth = depth_of(p);
  const bool widen = !has_product(p.a.dtype);
  const bool narrow = p.c.dtype == DType::bf16 && (widen || p.k > depth);
  const std::int64_t lda = p.transpose_a ? p.m : p.k;
  const std::int64_t ldb = p.transpose_b ? p.k : p.n;
  char* const c = static_cast<char*>(p.c.data) + (block.m0 * p.n + block.n0) * size_of(p.c.dtype);
  void* const sum = narrow ? scratch(Scratch::c, block.m * block.n * 4) : c;
  for (std::int64_t k0 = 0; k0 < p.k || k0 == 0; k0 += depth) {
    const void* a = p.transpose_a ? at(p.a, k0, block.m0, lda) : at(p.a, block.m0, k0, lda);
    const void* b = p.transpose_b ? at(p.b, block.n0, k0, ldb) : at(p.b, k0, block.n0, ldb);
    const void* bias = k0 == 0 && !p.bias.empty() ? at(p.bias, 0, block.n0, 0) : nullptr;
    Product product{.m = block.m,
                    .n = block.n,
                    .k = p.k - k0 < depth ? p.k - k0 : depth,
                    .lda = lda,
                    .ldb = ldb,
                    .ldc = narrow ? block.n : p.n,
                    .transpose_a = p.transpose_a,
                    .transpose_b = p.transpose_b,
                    .bias = bias != nullptr,
                    .accumulate = k0 > 0 || p.accumulate,
                    .type = p.a.dtype,
                    .out = narrow ? DType::f32 : p.c.dtype,
                    .threads = threads};
    if (widen) {
      widen_operands(product, a, b, bias);
    }
    run_product(product, a, b, bias, sum);
  }
  if (narrow) {
    convert(reinterpret_cast<bf16*>(c), p.n, static_cast<const float*>(sum), block.n, block.m,
            block.n, threads);
  }
}

void run_blocks(Stream& stream, const Matmul& p) {
  const std::int64_t rows = block_of(p.m, kSide);
  const std::int64_t columns = block_of(p.n, kSide);
  for (std::int64_t m0 = 0; m0 < p.m; m0 += rows) {
    for (std::int64_t n0 = 0; n0 < p.n; n0 += columns) {
      run_block(
          p, {m0, n0, m0 + rows > p.m ? p.m - m0 : rows, n0 + columns > p.n ? p.n - n0 : columns},
          stream.threads());
    }
  }
}

}  // namespace

void matmul(Stream& stream, const Matmul& p) {
  check(p.a.dtype == p.b.dtype && (p.c.dtype == p.a.dtype || p.c.dtype == DType::f32),
        "a product is T x T -> T or f32");
  check(!p.accumulate || (p.c.dtype == DType::f32 && p.epilogue == Epilogue::none),
        "a product is added to f32 without an epilogue");
  check(p.m >= 0 && p.n >= 0 && p.k > 0, "a product has a shape");
  if (p.epilogue == Epilogue::gelu) {
    Matmul before = p;
    before.c = p.aux;
    run_blocks(stream, before);
    gelu_forward(stream, p.c, p.aux);
    return;
  }
  run_blocks(stream, p);
  if (p.epilogue == Epilogue::gelu_backward) {
    gelu_backward(stream, p.c, p.c, p.aux);
  }
}

}  // namespace trireme::cpu::TRIREME_ISA
