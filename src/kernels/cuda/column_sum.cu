#include <algorithm>

#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/column_sum.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/scratch.h"

namespace trireme::cuda {
namespace {

// The sums of at most kMostChunks chunks of rows are taken first, and then added.
constexpr std::int64_t kMostChunks = 128;
constexpr std::int64_t kLeastRows = 64;  // per chunk
constexpr int kChunkWarps = 8;
constexpr int kFinalWarps = 32;

template <class T>
struct Columns {
  const T* x;  // [rows, columns]
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t chunk;  // rows per block
  float* first;        // [chunks, columns], or the first `split` columns of one row
  std::int64_t split;  // columns from here on go to `second`
  float* second;
};

// Block (x, y) sums kWarp * kCount columns over chunk y of the rows: each warp takes every
// kWarps-th row, then the warps' sums are added in their order.
template <class T, int kCount, int kWarps, bool kWide>
__global__ void __launch_bounds__(kWarps* kWarp) column_sum_kernel(const Columns<T> p) {
  constexpr int kColumns = kWarp * kCount;
  __shared__ float partial[kWarps][kColumns];
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumns;
  const std::int64_t own = column + lane * kCount;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * p.chunk;
  const std::int64_t end = min(begin + p.chunk, p.rows);
  Floats<kCount> sum{};
  for (std::int64_t row = begin + warp; row < end && own < p.columns; row += kWarps) {
    const auto x = load<kCount, kWide>(p.x + row * p.columns + own, p.columns - own);
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      sum.x[j] += x.x[j];
    }
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    partial[warp][lane * kCount + j] = sum.x[j];
  }
  __syncthreads();
  for (int j = static_cast<int>(threadIdx.x); j < kColumns && column + j < p.columns;
       j += kWarps * kWarp) {
    float all = partial[0][j];
    for (int w = 1; w < kWarps; ++w) {
      all += partial[w][j];
    }
    const std::int64_t to = column + j;
    if (to < p.split) {
      p.first[static_cast<std::int64_t>(blockIdx.y) * p.columns + to] = all;
    } else {
      p.second[to - p.split] = all;
    }
  }
}

template <class T>
void sum_columns(Stream& stream, const T* x, std::int64_t m, std::int64_t n, float* sum) {
  constexpr int kCount = kPerAccess<T>;
  const std::int64_t chunk = std::max(kLeastRows, (m + kMostChunks - 1) / kMostChunks);
  const std::int64_t chunks = std::max<std::int64_t>(1, (m + chunk - 1) / chunk);
  float* const to = chunks == 1 ? sum : scratch_of<float>(stream, chunks * n);
  by_bool(aligned_rows(n * static_cast<std::int64_t>(sizeof(T)), {x}), [&](auto is_wide) {
    launch(kernel_of<column_sum_kernel<T, kCount, kChunkWarps, decltype(is_wide)::value>>,
           dim3(blocks_of(n, kWarp * kCount), static_cast<unsigned>(chunks)),
           dim3(kChunkWarps * kWarp), 0, cuda_stream(stream),
           Columns<T>{.x = x,
                      .rows = m,
                      .columns = n,
                      .chunk = chunk,
                      .first = to,
                      .split = n,
                      .second = nullptr});
  });
  if (chunks > 1) {
    sum_of_rows(cuda_stream(stream), to, chunks, n, sum, n, nullptr);
  }
}

}  // namespace

void sum_of_rows(cudaStream_t stream, const float* x, std::int64_t rows, std::int64_t columns,
                 float* first, std::int64_t split, float* second) {
  launch(kernel_of<column_sum_kernel<float, 1, kFinalWarps, false>>,
         dim3(blocks_of(columns, kWarp)), dim3(kFinalWarps * kWarp), 0, stream,
         Columns<float>{.x = x,
                        .rows = rows,
                        .columns = columns,
                        .chunk = rows,
                        .first = first,
                        .split = split,
                        .second = second});
}

void column_sum(Stream& stream, const ColumnSum& p) {
  if (p.n == 0) {
    return;
  }
  by_type(p.x.dtype, [&](auto zero) {
    using T = decltype(zero);
    sum_columns(stream, device_pointer<T>(p.x), p.m, p.n, device_pointer<float>(p.sum));
  });
}

}  // namespace trireme::cuda
