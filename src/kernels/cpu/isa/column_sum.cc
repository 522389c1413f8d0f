#include "src/kernels/cpu/isa/isa_kernels.h"
#include "src/kernels/cpu/isa/row_blocks.h"
#include "src/kernels/cpu/scratch.h"

namespace trireme::cpu::TRIREME_ISA {
namespace {

// Sets sum[N] to the sum of the rows of x [rows, N], taking four rows at a time.
template <class T>
void sum_rows(const T* x, std::int64_t rows, std::int64_t n, float* sum) {
  for (std::int64_t i = 0; i < n; ++i) {
    sum[i] = 0;
  }
  std::int64_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const T* row = x + r * n;
    each_vector(n, [=](std::int64_t i, auto part) {
      const Floats first = load(row + i, part) + load(row + n + i, part);
      const Floats second = load(row + 2 * n + i, part) + load(row + 3 * n + i, part);
      store(sum + i, load(sum + i, part) + (first + second), part);
    });
  }
  for (; r < rows; ++r) {
    const T* row = x + r * n;
    each_vector(n, [=](std::int64_t i, auto part) {
      store(sum + i, load(sum + i, part) + load(row + i, part), part);
    });
  }
}

}  // namespace

void column_sum(Stream& stream, const ColumnSum& p) {
  const std::int64_t block = rows_per_block(p.m, 64);
  const std::int64_t blocks = (p.m + block - 1) / block;
  auto* const parts = static_cast<float*>(scratch(Scratch::parts, blocks * p.n * 4));
  by_type(p.x.dtype, [&]<class T>(T) {
    const T* x = as<T>(p.x);
    each_range(stream, blocks, 1, p.m * p.n, [=, &p](std::int64_t first, std::int64_t last) {
      for (std::int64_t b = first; b < last; ++b) {
        const std::int64_t rows = p.m - b * block < block ? p.m - b * block : block;
        sum_rows(x + b * block * p.n, rows, p.n, parts + b * p.n);
      }
    });
  });
  add_blocks(stream, blocks, p.n, p.n, parts, as<float>(p.sum));
}

}  // namespace trireme::cpu::TRIREME_ISA
