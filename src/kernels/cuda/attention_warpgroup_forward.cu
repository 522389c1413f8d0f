// Flash attention, forward (Dao, 2023; Shah et al., 2024), on Hopper's matrix units: a block takes
// 64 rows of queries of one head, and the keys come in tiles. While the matrix units multiply the
// weights of one tile by its values, the warps compute the weights of the next one.
#include "src/kernels/cuda/attention_warpgroup.h"

namespace trireme::cuda {
namespace {

// What a block has in shared memory: queries, and two tiles each of keys and
// values, used in turn.
template <int kD, int kKeys>
struct ForwardTiles {
  static constexpr int kQueryBytes = kTileBytes<kD, kGroupRows>;
  static constexpr int kKeyBytes = kTileBytes<kD, kKeys>;
  static constexpr int kBytes = kQueryBytes + 4 * kKeyBytes;
  unsigned char* q;
  __device__ unsigned char* keys(int tile) const { return q + kQueryBytes + tile % 2 * kKeyBytes; }
  __device__ unsigned char* values(int tile) const { return keys(tile) + 2 * kKeyBytes; }
};

// Says which two rows of 16 a lane has, and holds their softmax so far. Sums are over the lane's
// columns.
struct SoftmaxRows {
  int query[2];
  int position[2];
  float most[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};
  float shrink[2] = {1, 1};  // what the rows' results so far are to be multiplied by
};

// Makes the scores of keys that come after a row's position -infinity.
template <int kKeys>
__device__ void hide_later_keys(float (&x)[kKeys / 8][4], const SoftmaxRows& rows, int first_key) {
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      const int key = first_key + n * 8 + lane_column() + at % 2;
      x[n][at] = key > rows.position[at / 2] ? -INFINITY : x[n][at];
    }
  }
}

// Turns scores into weights, relative to the rows' new maxima.
template <int kKeys>
__device__ void weigh(float (&x)[kKeys / 8][4], SoftmaxRows& rows, float scale_log2) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float most = rows.most[half];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      most = fmaxf(most, fmaxf(x[n][2 * half], x[n][2 * half + 1]));
    }
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
    most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
    const float base = most == -INFINITY ? 0.0F : most * scale_log2;
    rows.shrink[half] = power_of_two(rows.most[half] * scale_log2 - base);
    rows.most[half] = most;
    float sum = 0;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& score = x[n][2 * half + j];
        score = power_of_two(score * scale_log2 - base);
        sum += score;
      }
    }
    rows.sum[half] = rows.sum[half] * rows.shrink[half] + sum;
  }
}

// Waits for the products and rescales the results so far, unless no row of the warp has a new
// maximum. ptxas would wait for the products before it computes the weights if both stood in one
// block of instructions: a branch that depends on all weights, and is never taken, divides it.
template <int kD, int kKeys>
__device__ void wait_and_shrink(float (&out)[kD / 8][4], std::uint32_t (&weights)[kKeys / 16][4],
                                const SoftmaxRows& rows) {
  if (rows.sum[0] + rows.sum[1] < 0) {
    __nanosleep(1);
  }
  wait_products<0>(out, weights);
  if (__any_sync(kAllLanes, rows.shrink[0] != 1.0F || rows.shrink[1] != 1.0F) != 0) {
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        out[n][at] *= rows.shrink[at / 2];
      }
    }
  }
}

// The rows of one block, and the tiles of keys that they read.
template <class T, int kD, int kKeys, bool kAlibi>
struct ForwardBlock {
  const ForwardArguments<T>& p;
  ForwardTiles<kD, kKeys> tiles;
  int head;
  int sample;
  int first;    // query
  int past;     // keys before the first query
  int keys;     // that the block's rows read
  int count;    // of tiles
  float slope;  // ALiBi's, divided by the scale
  const T* k;
  const T* v;

  __device__ explicit ForwardBlock(const ForwardArguments<T>& arguments)
      : p(arguments),
        tiles{dynamic_tiles()},
        head(static_cast<int>(blockIdx.y)),
        sample(static_cast<int>(blockIdx.z)),
        // Blocks with the most keys start first.
        first(static_cast<int>(gridDim.x - 1 - blockIdx.x) * kGroupRows),
        past(p.s.kv_time - p.s.time),
        keys(min(p.s.kv_time, past + first + kGroupRows)),
        count((keys + kKeys - 1) / kKeys),
        slope(unscaled_slope<kAlibi>(p.s, head)) {
    const std::int64_t at = sample * p.s.kv_batch_rows * p.s.kv_stride +
                            static_cast<std::int64_t>(head / (p.s.heads / p.s.kv_heads)) * kD;
    k = p.k + at;
    v = p.v + at;
  }
  // Starts the copies of what is read before the first turn.
  __device__ void start() const {
    const std::int64_t row = static_cast<std::int64_t>(sample) * p.s.time + first;
    start_tile<kD, kGroupRows>(tiles.q,
                               p.q + row * p.s.q_stride + static_cast<std::int64_t>(head) * kD,
                               p.s.q_stride, p.s.time - first);
    start_keys(0);
    commit_copies();
  }
  // Starts the copies of what a turn reads: its values, and the keys of the next one.
  __device__ void start(int turn) const {
    if (turn + 1 < count) {
      start_keys(turn + 1);
    }
    const int begin = turn * kKeys;
    start_tile<kD, kKeys>(tiles.values(turn), v + begin * p.s.kv_stride, p.s.kv_stride,
                          keys - begin);
    commit_copies();
  }
  __device__ void start_keys(int turn) const {
    const int begin = turn * kKeys;
    start_tile<kD, kKeys>(tiles.keys(turn), k + begin * p.s.kv_stride, p.s.kv_stride, keys - begin);
  }
  __device__ void queue_scores(float (&x)[kKeys / 8][4], int turn) const {
    queue_product_by_rows<T, kD, kKeys>(x, tiles.q, tiles.keys(turn));
    commit_products();
  }
  __device__ void weigh_turn(float (&x)[kKeys / 8][4], SoftmaxRows& rows, int turn) const {
    const int first_key = turn * kKeys;
    if constexpr (kAlibi) {
      const int own = first + static_cast<int>(threadIdx.x / kWarp) * 16;
      add_distances<kKeys>(x, slope, first_key - past - own);
    }
    if (first_key + kKeys > past + first) {
      hide_later_keys<kKeys>(x, rows, first_key);
    }
    weigh<kKeys>(x, rows, p.s.scale * kLog2E);
  }
};

// Stores a warp's 16 rows of the output and their lse.
template <class T, int kD, int kKeys, bool kAlibi>
__device__ void finish_rows(const ForwardBlock<T, kD, kKeys, kAlibi>& block,
                            const SoftmaxRows& rows, const float (&out)[kD / 8][4]) {
  const ForwardArguments<T>& p = block.p;
  const AttentionSizes& s = p.s;
  float factor[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = rows.sum[half];
    sum += __shfl_xor_sync(kAllLanes, sum, 1);
    sum += __shfl_xor_sync(kAllLanes, sum, 2);
    factor[half] = 1.0F / sum;
    if (p.lse != nullptr && rows.query[half] < s.time && threadIdx.x % 4 == 0) {
      p.lse[(static_cast<std::int64_t>(block.sample) * s.heads + block.head) * s.time +
            rows.query[half]] = rows.most[half] * s.scale + logf(sum);
    }
  }
  const int first = block.first + static_cast<int>(threadIdx.x / kWarp) * 16;
  const std::int64_t stride = static_cast<std::int64_t>(s.heads) * kD;
  T* const to = p.out + (static_cast<std::int64_t>(block.sample) * s.time + first) * stride +
                static_cast<std::int64_t>(block.head) * kD;
  store_tile_rows<kD>(to, stride, s.time - first, block.tiles.q, out, factor);
}

template <class T, int kD, int kKeys, int kBlocks, bool kAlibi>
__global__ void __launch_bounds__(kGroupThreads, kBlocks)
    warpgroup_forward_kernel(const ForwardArguments<T> p) {
  const ForwardBlock<T, kD, kKeys, kAlibi> block(p);
  block.start();
  block.start(0);
  SoftmaxRows rows;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows.query[half] =
        block.first + static_cast<int>(threadIdx.x / kWarp) * 16 + lane_row() + 8 * half;
    rows.position[half] = block.past + rows.query[half];
  }
  float out[kD / 8][4] = {};
  std::uint32_t weights[kKeys / 16][4];
  wait_copies<1>();
  show_to_products();
  __syncthreads();
  float x[kKeys / 8][4];
  start_products(x);
  block.queue_scores(x, 0);
  wait_products<0>(x);
  block.weigh_turn(x, rows, 0);
  round_to_fragments<T, kKeys>(weights, x);
  for (int turn = 0; turn < block.count; ++turn) {
    wait_copies<0>();
    show_to_products();
    __syncthreads();  // also: nobody still reads the tiles that are overwritten next
    if (turn + 1 == block.count) {
      break;
    }
    block.start(turn + 1);
    start_products(x, out, weights);
    block.queue_scores(x, turn + 1);
    queue_product_by_columns<T, kD, kKeys>(out, weights, block.tiles.values(turn));
    commit_products();
    wait_products<1>(x);
    block.weigh_turn(x, rows, turn + 1);
    wait_and_shrink<kD, kKeys>(out, weights, rows);
    round_to_fragments<T, kKeys>(weights, x);
  }
  start_products(out, weights);
  queue_product_by_columns<T, kD, kKeys>(out, weights, block.tiles.values(block.count - 1));
  commit_products();
  wait_products<0>(out, weights);
  finish_rows(block, rows, out);
}

template <class T, int kD, int kKeys, int kBlocks, bool kAlibi>
void enqueue_by_warpgroups(cudaStream_t stream, const ForwardArguments<T>& p) {
  constexpr std::size_t kShared = ForwardTiles<kD, kKeys>::kBytes;
  const auto& kernel = kernel_of<warpgroup_forward_kernel<T, kD, kKeys, kBlocks, kAlibi>>;
  permit_shared(kernel, kShared);
  launch(kernel,
         dim3(blocks_of(p.s.time, kGroupRows), static_cast<unsigned>(p.s.heads),
              static_cast<unsigned>(p.s.batch)),
         dim3(kGroupThreads), kShared, stream, p);
}

}  // namespace

void warpgroup_attention_forward(cudaStream_t stream, const AttentionForward& p) {
  by_half_type(p.q.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arguments = forward_arguments<T>(p);
    by_bool(!p.slopes.empty(), [&](auto has_bias) {
      constexpr bool kAlibi = decltype(has_bias)::value;
      if (p.head_dim == 64) {
        enqueue_by_warpgroups<T, 64, 64, 4, kAlibi>(stream, arguments);
      } else {
        enqueue_by_warpgroups<T, 128, 64, 2, kAlibi>(stream, arguments);
      }
    });
  });
}

}  // namespace trireme::cuda
