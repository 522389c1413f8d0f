// Flash attention, backward, on Hopper's matrix units. The formulas, and why there are two passes,
// are in attention_backward.cu. Weights and their gradients go from one product to the next in
// registers; only the rows of q, k, v and dout lie in shared memory.
#include "src/kernels/cuda/attention_warpgroup.h"

namespace trireme::cuda {
namespace {

// What a block has in shared memory: two tiles of its own rows, and two each of the rows that it
// reads in turn, so that the next ones can be copied while some are in use.
template <int kD, int kRead>
struct BackwardTiles {
  static constexpr int kOwnBytes = kTileBytes<kD, kGroupRows>;
  static constexpr int kReadBytes = kTileBytes<kD, kRead>;
  static constexpr int kTilesBytes = 2 * kOwnBytes + 4 * kReadBytes;
  // With lse in powers of 2 and delta of the queries that are read, in a multiple of 1,024 bytes.
  static constexpr int kBytes =
      kTilesBytes + (static_cast<int>(sizeof(float)) * 4 * kRead + 1023) / 1024 * 1024;
  unsigned char* own_a;
  __device__ unsigned char* own_b() const { return own_a + kOwnBytes; }
  __device__ unsigned char* first(int turn) const {
    return own_a + 2 * kOwnBytes + turn % 2 * kReadBytes;
  }
  __device__ unsigned char* second(int turn) const { return first(turn) + 2 * kReadBytes; }
  __device__ float* lse(int turn) const {
    return reinterpret_cast<float*>(own_a + kTilesBytes) + turn % 2 * 2 * kRead;
  }
  __device__ float* delta(int turn) const { return lse(turn) + kRead; }
};

// What a block of keys reads in turn: tiles of queries from those keys on, of each of the heads
// that read them.
template <class T, int kD, int kQueries>
struct KeyBlock {
  const BackwardArguments<T>& p;
  BackwardTiles<kD, kQueries> tiles;
  int kv_head;
  int sample;
  int first;       // key
  int first_tile;  // of queries
  int per_head;    // tiles

  __device__ explicit KeyBlock(const BackwardArguments<T>& arguments)
      : p(arguments),
        tiles{dynamic_tiles()},
        kv_head(static_cast<int>(blockIdx.y)),
        sample(static_cast<int>(blockIdx.z)),
        first(static_cast<int>(blockIdx.x) * kGroupRows),
        first_tile(first / kQueries),
        per_head((p.s.time + kQueries - 1) / kQueries - first_tile) {}
  __device__ int group() const { return p.s.heads / p.s.kv_heads; }
  __device__ int count() const { return group() * per_head; }
  __device__ int query_head(int turn) const { return kv_head * group() + turn / per_head; }
  __device__ int begin(int turn) const { return (first_tile + turn % per_head) * kQueries; }
  // Returns where the block's keys are in k and v, and their gradients in dk and dv.
  __device__ std::int64_t own() const {
    return (static_cast<std::int64_t>(sample) * p.s.time + first) * p.s.kv_stride +
           static_cast<std::int64_t>(kv_head) * kD;
  }
  // Starts the copies of what is read before the first turn.
  __device__ void start() const {
    const int left = p.s.time - first;
    start_tile<kD, kGroupRows>(tiles.own_a, p.k + own(), p.s.kv_stride, left);
    start_tile<kD, kGroupRows>(tiles.own_b(), p.v + own(), p.s.kv_stride, left);
    start(0);
  }
  __device__ void start(int turn) const {
    const AttentionSizes& s = p.s;
    const int head = kv_head * group() + turn / per_head;
    const int left = s.time - begin(turn);
    const std::int64_t row = static_cast<std::int64_t>(sample) * s.time + begin(turn);
    const std::int64_t of_head = static_cast<std::int64_t>(head) * kD;
    const std::int64_t out_stride = static_cast<std::int64_t>(s.heads) * kD;
    start_tile<kD, kQueries>(tiles.first(turn), p.q + row * s.q_stride + of_head, s.q_stride, left);
    start_tile<kD, kQueries>(tiles.second(turn), p.dout + row * out_stride + of_head, out_stride,
                             left);
    const int i = static_cast<int>(threadIdx.x);
    if (i < kQueries) {
      const std::int64_t at =
          (static_cast<std::int64_t>(sample) * s.heads + head) * s.time + begin(turn) + i;
      tiles.lse(turn)[i] = i < left ? p.lse[at] * kLog2E : INFINITY;  // makes weights 0
      tiles.delta(turn)[i] = i < left ? p.delta[at] : 0.0F;
    }
    commit_copies();
  }
};

// Turns scores into weights; rows are keys, columns are queries. Queries that come before a key do
// not read it.
template <bool kAlibi, class T, int kD, int kQueries>
__device__ void weigh_queries(float (&x)[kQueries / 8][4], const KeyBlock<T, kD, kQueries>& block,
                              int turn) {
  const int first_query = block.begin(turn);
  if constexpr (kAlibi) {
    // Rows are keys here, and columns are queries, which makes distances negative.
    const int own = block.first + static_cast<int>(threadIdx.x / kWarp) * 16;
    const float slope = unscaled_slope<kAlibi>(block.p.s, block.query_head(turn));
    add_distances<kQueries>(x, -slope, first_query - own);
  }
  if (first_query < block.first + kGroupRows) {
    const int key = block.first + static_cast<int>(threadIdx.x / kWarp) * 16 + lane_row();
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        const int query = first_query + n * 8 + lane_column() + at % 2;
        x[n][at] = key + at / 2 * 8 > query ? -INFINITY : x[n][at];
      }
    }
  }
  const float scale_log2 = block.p.s.scale * kLog2E;
  const float* const lse_log2 = block.tiles.lse(turn) + lane_column();
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
    const float2 lse = *reinterpret_cast<const float2*>(lse_log2 + n * 8);
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      x[n][at] = power_of_two(x[n][at] * scale_log2 - (at % 2 == 0 ? lse.x : lse.y));
    }
  }
}

// Turns the products of dout and v into dS.
template <class T, int kD, int kQueries>
__device__ void slope_queries(float (&dx)[kQueries / 8][4], const float (&x)[kQueries / 8][4],
                              const KeyBlock<T, kD, kQueries>& block, int turn) {
  const float* const delta = block.tiles.delta(turn) + lane_column();
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
    const float2 shift = *reinterpret_cast<const float2*>(delta + n * 8);
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      dx[n][at] = x[n][at] * (dx[n][at] - (at % 2 == 0 ? shift.x : shift.y));
    }
  }
}

template <class T, int kD, int kQueries, int kBlocks, bool kAlibi>
__global__ void __launch_bounds__(kGroupThreads, kBlocks)
    warpgroup_keys_kernel(const BackwardArguments<T> p) {
  const KeyBlock<T, kD, kQueries> block(p);
  const auto& tiles = block.tiles;
  block.start();
  float dk[kD / 8][4] = {};
  float dv[kD / 8][4] = {};
  for (int turn = 0; turn < block.count(); ++turn) {
    wait_copies<0>();
    show_to_products();
    __syncthreads();  // also: nobody still reads the tiles that are overwritten next
    if (turn + 1 < block.count()) {
      block.start(turn + 1);
    }
    float x[kQueries / 8][4];
    float dx[kQueries / 8][4];
    std::uint32_t weights[kQueries / 16][4];
    std::uint32_t slopes[kQueries / 16][4];
    start_products(x, dx);
    queue_product_by_rows<T, kD, kQueries>(x, tiles.own_a, tiles.first(turn));
    commit_products();
    queue_product_by_rows<T, kD, kQueries>(dx, tiles.own_b(), tiles.second(turn));
    commit_products();
    wait_products<1>(x);
    weigh_queries<kAlibi>(x, block, turn);
    wait_products<0>(dx);
    slope_queries(dx, x, block, turn);
    round_to_fragments<T, kQueries>(weights, x);
    round_to_fragments<T, kQueries>(slopes, dx);
    start_products(dv, dk, weights, slopes);
    queue_product_by_columns<T, kD, kQueries>(dv, weights, tiles.second(turn));
    queue_product_by_columns<T, kD, kQueries>(dk, slopes, tiles.first(turn));
    commit_products();
    wait_products<0>(dv, dk, weights, slopes);
  }
  __syncthreads();  // nobody still reads the block's own rows, which are overwritten next
  const float scales[2] = {p.s.scale, p.s.scale};
  const float ones[2] = {1, 1};
  const int own_row = static_cast<int>(threadIdx.x / kWarp) * 16;
  const std::int64_t to = block.own() + own_row * p.s.kv_stride;
  const int left = p.s.time - block.first - own_row;
  store_tile_rows<kD>(p.dk + to, p.s.kv_stride, left, tiles.own_a, dk, scales);
  store_tile_rows<kD>(p.dv + to, p.s.kv_stride, left, tiles.own_b(), dv, ones);
}

// What a block of queries reads in turn: tiles of keys.
template <class T, int kD, int kKeys>
struct QueryBlock {
  const BackwardArguments<T>& p;
  BackwardTiles<kD, kKeys> tiles;
  int head;
  int sample;
  int first;  // query
  int keys;   // that the block's rows read

  __device__ explicit QueryBlock(const BackwardArguments<T>& arguments)
      : p(arguments),
        tiles{dynamic_tiles()},
        head(static_cast<int>(blockIdx.y)),
        sample(static_cast<int>(blockIdx.z)),
        // Blocks with the most keys start first.
        first(static_cast<int>(gridDim.x - 1 - blockIdx.x) * kGroupRows),
        keys(min(p.s.time, first + kGroupRows)) {}
  __device__ int count() const { return (keys + kKeys - 1) / kKeys; }
  __device__ std::int64_t row() const {
    return static_cast<std::int64_t>(sample) * p.s.time + first;
  }
  // Returns where the block's queries are in q, and their gradients in dq.
  __device__ std::int64_t own() const {
    return row() * p.s.q_stride + static_cast<std::int64_t>(head) * kD;
  }
  // Starts the copies of what is read before the first turn.
  __device__ void start() const {
    const int left = p.s.time - first;
    const std::int64_t out_stride = static_cast<std::int64_t>(p.s.heads) * kD;
    start_tile<kD, kGroupRows>(tiles.own_a, p.q + own(), p.s.q_stride, left);
    start_tile<kD, kGroupRows>(tiles.own_b(),
                               p.dout + row() * out_stride + static_cast<std::int64_t>(head) * kD,
                               out_stride, left);
    start(0);
  }
  __device__ void start(int turn) const {
    const AttentionSizes& s = p.s;
    const int begin = turn * kKeys;
    const std::int64_t at = (static_cast<std::int64_t>(sample) * s.time + begin) * s.kv_stride +
                            static_cast<std::int64_t>(head / (s.heads / s.kv_heads)) * kD;
    start_tile<kD, kKeys>(tiles.first(turn), p.k + at, s.kv_stride, keys - begin);
    start_tile<kD, kKeys>(tiles.second(turn), p.v + at, s.kv_stride, keys - begin);
    commit_copies();
  }
};

// The two rows of queries of a lane.
struct QueryRows {
  int query[2];
  float lse_log2[2];
  float delta[2];

  template <class T, int kD, int kKeys>
  __device__ explicit QueryRows(const QueryBlock<T, kD, kKeys>& block) {
    const AttentionSizes& s = block.p.s;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      query[half] =
          block.first + static_cast<int>(threadIdx.x / kWarp) * 16 + lane_row() + 8 * half;
      const bool here = query[half] < s.time;
      const std::int64_t at =
          (static_cast<std::int64_t>(block.sample) * s.heads + block.head) * s.time + query[half];
      lse_log2[half] = here ? block.p.lse[at] * kLog2E : INFINITY;  // makes weights 0
      delta[half] = here ? block.p.delta[at] : 0.0F;
    }
  }
};

// Turns scores into weights; rows are queries, columns are keys from first_key on. masked: some of
// the keys come after some queries.
template <int kKeys>
__device__ void weigh_keys(float (&x)[kKeys / 8][4], const QueryRows& rows, bool masked,
                           int first_key, float scale_log2) {
  if (masked) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        const int key = first_key + n * 8 + lane_column() + at % 2;
        x[n][at] = key > rows.query[at / 2] ? -INFINITY : x[n][at];
      }
    }
  }
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      x[n][at] = power_of_two(x[n][at] * scale_log2 - rows.lse_log2[at / 2]);
    }
  }
}

template <class T, int kD, int kKeys, int kBlocks, bool kAlibi>
__global__ void __launch_bounds__(kGroupThreads, kBlocks)
    warpgroup_queries_kernel(const BackwardArguments<T> p) {
  const QueryBlock<T, kD, kKeys> block(p);
  const auto& tiles = block.tiles;
  block.start();
  const QueryRows rows(block);
  const float slope = unscaled_slope<kAlibi>(p.s, block.head);
  float dq[kD / 8][4] = {};
  for (int turn = 0; turn < block.count(); ++turn) {
    wait_copies<0>();
    show_to_products();
    __syncthreads();  // also: nobody still reads the tiles that are overwritten next
    if (turn + 1 < block.count()) {
      block.start(turn + 1);
    }
    const int first_key = turn * kKeys;
    float x[kKeys / 8][4];
    float dx[kKeys / 8][4];
    std::uint32_t slopes[kKeys / 16][4];
    start_products(x, dx);
    queue_product_by_rows<T, kD, kKeys>(x, tiles.own_a, tiles.first(turn));
    commit_products();
    queue_product_by_rows<T, kD, kKeys>(dx, tiles.own_b(), tiles.second(turn));
    commit_products();
    wait_products<1>(x);
    if constexpr (kAlibi) {
      const int own = block.first + static_cast<int>(threadIdx.x / kWarp) * 16;
      add_distances<kKeys>(x, slope, first_key - own);
    }
    weigh_keys<kKeys>(x, rows, first_key + kKeys > block.first, first_key, p.s.scale * kLog2E);
    wait_products<0>(dx);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        dx[n][at] = x[n][at] * (dx[n][at] - rows.delta[at / 2]);
      }
    }
    round_to_fragments<T, kKeys>(slopes, dx);
    start_products(dq, slopes);
    queue_product_by_columns<T, kD, kKeys>(dq, slopes, tiles.first(turn));
    commit_products();
    wait_products<0>(dq, slopes);
  }
  __syncthreads();  // nobody still reads the block's own rows, which are overwritten next
  const float scales[2] = {p.s.scale, p.s.scale};
  const int own_row = static_cast<int>(threadIdx.x / kWarp) * 16;
  store_tile_rows<kD>(p.dq + block.own() + own_row * p.s.q_stride, p.s.q_stride,
                      p.s.time - block.first - own_row, tiles.own_a, dq, scales);
}

// kBlocks: of each pass on a multiprocessor at a time, as registers and shared memory permit.
template <int kD, int kKeyBlocks, int kQueryBlocks, bool kAlibi, class T>
void enqueue_by_warpgroups(cudaStream_t stream, const BackwardArguments<T>& p) {
  constexpr int kRead = 64;  // queries, and keys, at a time
  constexpr std::size_t kShared = BackwardTiles<kD, kRead>::kBytes;
  const auto& keys = kernel_of<warpgroup_keys_kernel<T, kD, kRead, kKeyBlocks, kAlibi>>;
  const auto& queries = kernel_of<warpgroup_queries_kernel<T, kD, kRead, kQueryBlocks, kAlibi>>;
  permit_shared(keys, kShared);
  permit_shared(queries, kShared);
  const unsigned blocks = blocks_of(p.s.time, kGroupRows);
  const auto batch = static_cast<unsigned>(p.s.batch);
  launch(keys, dim3(blocks, static_cast<unsigned>(p.s.kv_heads), batch), dim3(kGroupThreads),
         kShared, stream, p);
  launch(queries, dim3(blocks, static_cast<unsigned>(p.s.heads), batch), dim3(kGroupThreads),
         kShared, stream, p);
}

}  // namespace

void warpgroup_attention_backward(cudaStream_t stream, const AttentionBackward& p,
                                  const float* delta) {
  by_half_type(p.forward.q.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arguments = backward_arguments<T>(p, delta);
    by_bool(!p.forward.slopes.empty(), [&](auto has_bias) {
      constexpr bool kAlibi = decltype(has_bias)::value;
      if (p.forward.head_dim == 64) {
        enqueue_by_warpgroups<64, 3, kAlibi ? 3 : 4, kAlibi>(stream, arguments);
      } else {
        enqueue_by_warpgroups<128, 2, 2, kAlibi>(stream, arguments);
      }
    });
  });
}

}  // namespace trireme::cuda
