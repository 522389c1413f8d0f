// A radix sort from the least significant digit on (Knuth, The Art of Computer Programming, volume
// 3, 5.2.5). A block takes a chunk of rows, and each of its warps a run of the chunk. A pass first
// counts the digits of each chunk; then each block adds the counts of the chunks before it, and its
// warps store their rows in order. There are at most kSortChunks chunks, so that these sums stay
// small.
#include <algorithm>
#include <bit>

#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/elements.h"
#include "src/kernels/cuda/row_sort.h"
#include "src/kernels/cuda/scratch.h"

namespace trireme::cuda {
namespace {

constexpr int kSortWarps = 8;
constexpr int kSortThreads = kSortWarps * kWarp;
constexpr int kMostBits = 9;  // of a digit
constexpr int kMostBins = 1 << kMostBits;
constexpr int kOwnBins = kMostBins / kSortThreads;  // adjacent bins of one thread
static_assert(kOwnBins == 2);
constexpr std::int64_t kSortChunks = 128;
constexpr std::int64_t kLeastChunk = 1024;  // rows

struct SortPass {
  RowIds source;
  const SortedRow* from;  // [rows]; null in the first pass, which reads the source
  SortedRow* to;          // [rows]
  int* counts;            // [chunks, bins]
  std::int64_t run;       // rows per warp, a multiple of kWarp
  int chunks;
  int shift;  // the digit's lowest bit
  int bits;

  __device__ int bins() const { return 1 << bits; }
  __device__ int digit_of(const SortedRow& row) const {
    return static_cast<int>((row.id >> shift) & static_cast<unsigned>(bins() - 1));
  }
  __device__ SortedRow row_at(std::int64_t i) const {
    if (from != nullptr) {
      return from[i];
    }
    const std::int64_t id = source.ids[i] - source.first_id;
    const bool here = id >= 0 && id < source.held;
    return {static_cast<std::uint32_t>(here ? id : source.held), static_cast<std::int32_t>(i)};
  }
};

__global__ void __launch_bounds__(kSortThreads) count_kernel(const SortPass p) {
  __shared__ int counts[kMostBins];
  const auto thread = static_cast<int>(threadIdx.x);
  for (int bin = thread; bin < p.bins(); bin += kSortThreads) {
    counts[bin] = 0;
  }
  __syncthreads();
  const std::int64_t begin = blockIdx.x * p.run * kSortWarps;
  const std::int64_t end = min(begin + p.run * kSortWarps, p.source.rows);
  for (std::int64_t i = begin + thread; i < end; i += kSortThreads) {
    atomicAdd(&counts[p.digit_of(p.row_at(i))], 1);
  }
  __syncthreads();
  for (int bin = thread; bin < p.bins(); bin += kSortThreads) {
    p.counts[static_cast<std::int64_t>(blockIdx.x) * p.bins() + bin] = counts[bin];
  }
}

// Returns the sum of x over the threads before this one. Contains a barrier.
__device__ int sum_before(int x) {
  __shared__ int of_warps[kSortWarps];
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  int sum = x;
#pragma unroll
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    const int other = __shfl_up_sync(kAllLanes, sum, distance);
    sum += lane >= static_cast<int>(distance) ? other : 0;
  }
  if (lane == kWarp - 1) {
    of_warps[warp] = sum;
  }
  __syncthreads();
  int before = sum - x;
#pragma unroll
  for (int other = 0; other < kSortWarps; ++other) {
    before += other < warp ? of_warps[other] : 0;
  }
  return before;
}

// Replaces each warp's counts of the bins by the places of its first row of each bin. Contains a
// barrier, behind which it reads the counts.
__device__ void find_places(const SortPass& p, int (*places)[kMostBins]) {
  const int first = static_cast<int>(threadIdx.x) * kOwnBins;
  int before[kOwnBins] = {};  // rows of a bin in the chunks before this one
  int total[kOwnBins] = {};
  if (first < p.bins()) {
#pragma unroll 8
    for (int chunk = 0; chunk < p.chunks; ++chunk) {
#pragma unroll
      for (int j = 0; j < kOwnBins; ++j) {
        const int count = p.counts[static_cast<std::int64_t>(chunk) * p.bins() + first + j];
        before[j] += chunk < static_cast<int>(blockIdx.x) ? count : 0;
        total[j] += count;
      }
    }
  }
  int all = 0;
#pragma unroll
  for (const int one : total) {
    all += one;
  }
  int place = sum_before(all);
  if (first < p.bins()) {
#pragma unroll
    for (int j = 0; j < kOwnBins; ++j) {
      int next = place + before[j];
      for (int warp = 0; warp < kSortWarps; ++warp) {
        const int count = places[warp][first + j];
        places[warp][first + j] = next;
        next += count;
      }
      place += total[j];
    }
  }
}

__global__ void __launch_bounds__(kSortThreads) place_kernel(const SortPass p) {
  __shared__ int places[kSortWarps][kMostBins];
  const auto lane = static_cast<int>(threadIdx.x % kWarp);
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  int* const own = places[warp];
  for (int bin = lane; bin < kMostBins; bin += kWarp) {
    own[bin] = 0;
  }
  __syncwarp();
  const std::int64_t begin =
      min((static_cast<std::int64_t>(blockIdx.x) * kSortWarps + warp) * p.run, p.source.rows);
  const std::int64_t end = min(begin + p.run, p.source.rows);
  for (std::int64_t i = begin + lane; i < end; i += kWarp) {
    atomicAdd(&own[p.digit_of(p.row_at(i))], 1);
  }
  find_places(p, places);
  __syncthreads();
  for (std::int64_t base = begin; base < end; base += kWarp) {
    const bool here = base + lane < end;
    const SortedRow row = here ? p.row_at(base + lane) : SortedRow{};
    const int digit = p.digit_of(row);
    unsigned alike = __ballot_sync(kAllLanes, here ? 1 : 0);  // lanes with rows of the same bin
    for (int bit = 0; bit < p.bits; ++bit) {
      const int set = digit >> bit & 1;
      const unsigned lanes = __ballot_sync(kAllLanes, set);
      alike &= set != 0 ? lanes : ~lanes;
    }
    const int before = __popc(alike & ((1U << lane) - 1U));
    if (here) {
      p.to[own[digit] + before] = row;
    }
    __syncwarp();
    if (here && before == 0) {
      own[digit] += __popc(alike);
    }
    __syncwarp();
  }
}

}  // namespace

const SortedRow* sort_rows(Stream& stream, const RowIds& rows) {
  check(rows.rows < std::int64_t{1} << 31, "a batch has fewer than 2^31 tokens");
  check(rows.held < std::int64_t{1} << 31, "a vocabulary has fewer than 2^31 ids");
  // At least one bit, so that there are kOwnBins bins.
  const int all_bits =
      std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(rows.held))));
  const int passes = (all_bits + kMostBits - 1) / kMostBits;
  const int bits = (all_bits + passes - 1) / passes;
  const std::int64_t most_runs =
      kSortWarps * std::clamp<std::int64_t>(rows.rows / kLeastChunk, 1, kSortChunks);
  const std::int64_t run = ((rows.rows + most_runs - 1) / most_runs + kWarp - 1) / kWarp * kWarp;
  const unsigned chunks = blocks_of(rows.rows, run * kSortWarps);
  const std::int64_t areas = std::min(passes, 2);
  const std::int64_t counts = std::int64_t{chunks} << bits;  // an even number
  auto* const scratch = scratch_of<SortedRow>(stream, areas * rows.rows + counts / 2);
  SortPass pass{.source = rows,
                .from = nullptr,
                .to = scratch,
                .counts = reinterpret_cast<int*>(scratch + areas * rows.rows),
                .run = run,
                .chunks = static_cast<int>(chunks),
                .shift = 0,
                .bits = bits};
  for (int i = 0; i < passes; ++i) {
    launch(kernel_of<count_kernel>, dim3(chunks), dim3(kSortThreads), 0, cuda_stream(stream), pass);
    launch(kernel_of<place_kernel>, dim3(chunks), dim3(kSortThreads), 0, cuda_stream(stream), pass);
    pass.from = pass.to;
    pass.to = scratch + (i % 2 == 0 ? rows.rows : 0);
    pass.shift += bits;
  }
  return pass.from;
}

}  // namespace trireme::cuda
