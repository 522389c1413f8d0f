// Flash attention, backward (Dao, 2023), in two passes, so that no sum is shared between blocks:
// one block computes the gradients of its keys and values from all queries that read them, and
// another those of its queries. With P = exp(score - lse) and dropout's factor Z: dv = sum of P
// Z dout; dS = P (Z dout v - delta); dq = scale sum of dS k; dk = scale sum of dS q.
#include <algorithm>

#include "src/kernels/cuda/attention_tiles.h"

namespace trireme::cuda {
namespace {

// Four tiles in shared memory: two of the block's own rows, and two of the rows that it reads in
// turn, twice each, so that the next ones can be copied while some are in use.
template <class T, int kD, int kRead, int kRows>
struct Tiles {
  T* own_a;
  T* own_b;
  T* a;
  T* b;
  float* of_row;  // [2, 2, kRead]: lse in powers of 2, and delta, of queries that are read
  static constexpr std::size_t kBytes =
      sizeof(T) * (2 * kRows + 4 * kRead) * kPitch<kD> + sizeof(float) * 4 * kRead;
  __device__ explicit Tiles(T* memory)
      : own_a(memory),
        own_b(own_a + kRows * kPitch<kD>),
        a(own_b + kRows * kPitch<kD>),
        b(a + 2 * kRead * kPitch<kD>),
        of_row(reinterpret_cast<float*>(b + 2 * kRead * kPitch<kD>)) {}
  __device__ T* first(int turn) const { return a + turn % 2 * kRead * kPitch<kD>; }
  __device__ T* second(int turn) const { return b + turn % 2 * kRead * kPitch<kD>; }
  __device__ float* lse(int turn) const { return of_row + turn % 2 * 2 * kRead; }
  __device__ float* delta(int turn) const { return lse(turn) + kRead; }
};

// Returns dropout's factor for one weight.
template <bool kDropout>
__device__ float factor_of(const AttentionDropout& dropout, PhiloxKey seed, int sample, int query,
                           int key) {
  if constexpr (kDropout) {
    const PhiloxCounter words = dropout_words(dropout, seed, query, sample, key / 4);
    const std::uint32_t low = key % 2 == 0 ? words[0] : words[1];
    const std::uint32_t high = key % 2 == 0 ? words[2] : words[3];
    return dropout_factor(key % 4 < 2 ? low : high, dropout.probability,
                          1 / (1 - dropout.probability));
  } else {
    return 1;
  }
}

// Says which elements a lane has in the pass over keys: rows are keys, columns are queries.
struct KeyPlace {
  int first_key;    // of the warp
  int first_query;  // of the tile
  int head;
  int sample;
};

// Turns scores into P Z, and the products of dout and v into dS. kMasked: some queries come before
// some of the keys.
template <int kQueries, bool kDropout, bool kMasked, int kTiles>
__device__ void weigh_keys(float (&x)[kTiles][kQueries / 8][4],
                           float (&dx)[kTiles][kQueries / 8][4], const KeyPlace& at,
                           const AttentionSizes& s, const float* lse_log2, const float* delta) {
  const PhiloxKey seed = kDropout ? philox_key(s.dropout.seed_of(at.head)) : PhiloxKey{};
  const float scale_log2 = s.scale * kLog2E;
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int column = n * 8 + lane_column() + j;
      const int query = at.first_query + column;
      const float lse = lse_log2[column];
      const float shift = delta[column];
#pragma unroll
      for (int row = 0; row < 2 * kTiles; ++row) {
        const int key = at.first_key + lane_row() + 8 * row;
        float& score = x[row / 2][n][row % 2 * 2 + j];
        float& slope = dx[row / 2][n][row % 2 * 2 + j];
        const float power = power_of_two(score * scale_log2 - lse);
        const float weight = kMasked && key > query ? 0.0F : power;
        const float factor = factor_of<kDropout>(s.dropout, seed, at.sample, query, key);
        score = weight * factor;
        slope = weight * (factor * slope - shift);
      }
    }
  }
}

// The turns of a block of keys: the tiles of queries from those keys on, for each of the heads that
// read them.
template <class T, int kD, int kQueries, int kRows>
struct KeyTurns {
  const BackwardArguments<T>& p;
  Tiles<T, kD, kQueries, kRows> tiles;
  int kv_head;
  int sample;
  int first_tile;
  int per_head;

  __device__ KeyTurns(const BackwardArguments<T>& arguments, int first_key)
      : p(arguments),
        tiles(dynamic_shared<T>()),
        kv_head(static_cast<int>(blockIdx.y)),
        sample(static_cast<int>(blockIdx.z)),
        first_tile(first_key / kQueries),
        per_head((arguments.s.time + kQueries - 1) / kQueries - first_tile) {}
  __device__ int group() const { return p.s.heads / p.s.kv_heads; }
  __device__ int count() const { return group() * per_head; }
  __device__ int head(int turn) const { return kv_head * group() + turn / per_head; }
  __device__ int begin(int turn) const { return (first_tile + turn % per_head) * kQueries; }

  // Starts the copies of a turn.
  __device__ void start(int turn) const {
    const AttentionSizes& s = p.s;
    const int left = s.time - begin(turn);
    const std::int64_t row = static_cast<std::int64_t>(sample) * s.time + begin(turn);
    const std::int64_t of_head = static_cast<std::int64_t>(head(turn)) * s.head_dim;
    const std::int64_t out_stride = static_cast<std::int64_t>(s.heads) * s.head_dim;
    start_rows<kD, kQueries>(tiles.first(turn), p.q + row * s.q_stride + of_head, s.q_stride, left,
                             s.head_dim);
    start_rows<kD, kQueries>(tiles.second(turn), p.dout + row * out_stride + of_head, out_stride,
                             left, s.head_dim);
    const int i = static_cast<int>(threadIdx.x);
    if (i < kQueries) {
      const std::int64_t at =
          (static_cast<std::int64_t>(sample) * s.heads + head(turn)) * s.time + begin(turn) + i;
      tiles.lse(turn)[i] = i < left ? p.lse[at] * kLog2E : INFINITY;  // makes weights 0
      tiles.delta(turn)[i] = i < left ? p.delta[at] : 0.0F;
    }
    commit_copies();
  }
};

// Each warp takes 16 or 32 of the block's keys and kD / kSplit of their channels.
template <class T, int kD, int kQueries, int kSplit, bool kDropout, bool kAlibi>
__global__ void __launch_bounds__(kRowWarps* kSplit* kWarp)
    keys_kernel(const BackwardArguments<T> p) {
  constexpr int kTiles = kRowTiles<kD, kDropout, kAlibi>;
  constexpr int kWarpRows = 16 * kTiles;
  constexpr int kBlockRows = kRowWarps * kWarpRows;
  constexpr int kChannels = kD / kSplit;
  const AttentionSizes& s = p.s;
  const int first = static_cast<int>(blockIdx.x) * kBlockRows;
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int own_row = warp % kRowWarps * kWarpRows;
  const int channel = warp / kRowWarps * kChannels;
  const KeyTurns<T, kD, kQueries, kBlockRows> turns(p, first);
  const Tiles<T, kD, kQueries, kBlockRows>& tiles = turns.tiles;
  const std::int64_t own =
      (static_cast<std::int64_t>(turns.sample) * s.time + first) * s.kv_stride +
      static_cast<std::int64_t>(turns.kv_head) * s.head_dim;
  start_rows<kD, kBlockRows>(tiles.own_a, p.k + own, s.kv_stride, s.time - first, s.head_dim);
  start_rows<kD, kBlockRows>(tiles.own_b, p.v + own, s.kv_stride, s.time - first, s.head_dim);
  turns.start(0);
  float dk[kTiles][kChannels / 8][4] = {};
  float dv[kTiles][kChannels / 8][4] = {};
  for (int turn = 0; turn < turns.count(); ++turn) {
    wait_copies<0>();
    __syncthreads();  // also: nobody still reads the tiles that are overwritten next
    if (turn + 1 < turns.count()) {
      turns.start(turn + 1);
    }
    const KeyPlace at{.first_key = first + own_row,
                      .first_query = turns.begin(turn),
                      .head = turns.head(turn),
                      .sample = turns.sample};
    if (at.first_query + kQueries <= at.first_key) {
      continue;  // none of these queries reads the warp's keys
    }
    float x[kTiles][kQueries / 8][4] = {};
    float dx[kTiles][kQueries / 8][4] = {};
    multiply_by_rows<kD, kQueries>(x, tiles.own_a + own_row * kPitch<kD>, tiles.first(turn));
    multiply_by_rows<kD, kQueries>(dx, tiles.own_b + own_row * kPitch<kD>, tiles.second(turn));
    if constexpr (kAlibi) {
      // Rows are keys here, and columns are queries, which makes distances negative.
      const float slope = unscaled_slope<kAlibi>(s, at.head);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        add_distances<kQueries>(x[tile], -slope, at.first_query - at.first_key - 16 * tile);
      }
    }
    if (at.first_query < at.first_key + kWarpRows - 1) {
      weigh_keys<kQueries, kDropout, true>(x, dx, at, s, tiles.lse(turn), tiles.delta(turn));
    } else {
      weigh_keys<kQueries, kDropout, false>(x, dx, at, s, tiles.lse(turn), tiles.delta(turn));
    }
    multiply_by_columns<kD, kQueries, kChannels>(dv, x, tiles.second(turn) + channel);
    multiply_by_columns<kD, kQueries, kChannels>(dk, dx, tiles.first(turn) + channel);
  }
  if constexpr (kSplit > 1) {
    __syncthreads();  // two warps read the same rows
  }
  const float scales[2] = {s.scale, s.scale};
  const float ones[2] = {1, 1};
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int row = own_row + 16 * tile;
    const std::int64_t to = own + row * s.kv_stride;
    store_rows<kD, kChannels>(p.dk + to, s.kv_stride, s.time - first - row, s.head_dim,
                              tiles.own_a + row * kPitch<kD>, dk[tile], scales, channel);
    store_rows<kD, kChannels>(p.dv + to, s.kv_stride, s.time - first - row, s.head_dim,
                              tiles.own_b + row * kPitch<kD>, dv[tile], ones, channel);
  }
}

// Says which elements a lane has in the pass over queries: rows are queries, columns are keys.
template <int kTiles>
struct QueryPlace {
  int first_query;  // of the warp
  float lse_log2[2 * kTiles];
  float delta[2 * kTiles];
  int head;
  int sample;
};

// Turns scores and the products of dout and v into dS, in x. kMasked: some of the keys come after
// some queries.
template <int kKeys, bool kDropout, bool kMasked, int kTiles>
__device__ void weigh_queries(float (&x)[kTiles][kKeys / 8][4],
                              const float (&dx)[kTiles][kKeys / 8][4], const QueryPlace<kTiles>& at,
                              const AttentionSizes& s, int first_key) {
  const PhiloxKey seed = kDropout ? philox_key(s.dropout.seed_of(at.head)) : PhiloxKey{};
  const float scale_log2 = s.scale * kLog2E;
#pragma unroll
  for (int row = 0; row < 2 * kTiles; ++row) {
    const int query = at.first_query + lane_row() + 8 * row;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int key = first_key + n * 8 + lane_column() + j;
        float& score = x[row / 2][n][row % 2 * 2 + j];
        const float power = power_of_two(score * scale_log2 - at.lse_log2[row]);
        const float weight = kMasked && key > query ? 0.0F : power;
        const float factor = factor_of<kDropout>(s.dropout, seed, at.sample, query, key);
        score = weight * (factor * dx[row / 2][n][row % 2 * 2 + j] - at.delta[row]);
      }
    }
  }
}

// Each warp takes 16 or 32 of the block's queries.
template <class T, int kD, int kKeys, bool kDropout, bool kAlibi>
__global__ void __launch_bounds__(kRowWarps* kWarp) queries_kernel(const BackwardArguments<T> p) {
  constexpr int kTiles = kRowTiles<kD, kDropout, kAlibi>;
  constexpr int kWarpRows = 16 * kTiles;
  constexpr int kBlockRows = kRowWarps * kWarpRows;
  const AttentionSizes& s = p.s;
  const Tiles<T, kD, kKeys, kBlockRows> tiles(dynamic_shared<T>());
  // Blocks with the most keys start first.
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kBlockRows;
  const int head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int own_row = static_cast<int>(threadIdx.x / kWarp) * kWarpRows;
  const int keys = min(s.time, first + kBlockRows);
  const int count = (keys + kKeys - 1) / kKeys;
  const std::int64_t rows = static_cast<std::int64_t>(sample) * s.time;
  const std::int64_t out_stride = static_cast<std::int64_t>(s.heads) * s.head_dim;
  const std::int64_t of_head = static_cast<std::int64_t>(head) * s.head_dim;
  const std::int64_t own = (rows + first) * s.q_stride + of_head;
  const std::int64_t kv =
      rows * s.kv_stride + static_cast<std::int64_t>(head / (s.heads / s.kv_heads)) * s.head_dim;
  const auto start = [&](int tile) {
    const int begin = tile * kKeys;
    const std::int64_t at = kv + begin * s.kv_stride;
    start_rows<kD, kKeys>(tiles.first(tile), p.k + at, s.kv_stride, keys - begin, s.head_dim);
    start_rows<kD, kKeys>(tiles.second(tile), p.v + at, s.kv_stride, keys - begin, s.head_dim);
    commit_copies();
  };
  start_rows<kD, kBlockRows>(tiles.own_a, p.q + own, s.q_stride, s.time - first, s.head_dim);
  start_rows<kD, kBlockRows>(tiles.own_b, p.dout + (rows + first) * out_stride + of_head,
                             out_stride, s.time - first, s.head_dim);
  start(0);
  QueryPlace<kTiles> at{first + own_row, {}, {}, head, sample};
#pragma unroll
  for (int row = 0; row < 2 * kTiles; ++row) {
    const int query = at.first_query + lane_row() + 8 * row;
    const bool here = query < s.time;
    const std::int64_t place =
        (static_cast<std::int64_t>(sample) * s.heads + head) * s.time + query;
    at.lse_log2[row] = here ? p.lse[place] * kLog2E : INFINITY;  // makes weights 0
    at.delta[row] = here ? p.delta[place] : 0.0F;
  }
  const float slope = unscaled_slope<kAlibi>(s, head);
  float dq[kTiles][kD / 8][4] = {};
  for (int tile = 0; tile < count; ++tile) {
    wait_copies<0>();
    __syncthreads();  // also: nobody still reads the tiles that are overwritten next
    if (tile + 1 < count) {
      start(tile + 1);
    }
    const int first_key = tile * kKeys;
    if (first_key >= at.first_query + kWarpRows) {
      continue;  // none of the warp's queries reads these keys
    }
    float x[kTiles][kKeys / 8][4] = {};
    float dx[kTiles][kKeys / 8][4] = {};
    multiply_by_rows<kD, kKeys>(x, tiles.own_a + own_row * kPitch<kD>, tiles.first(tile));
    multiply_by_rows<kD, kKeys>(dx, tiles.own_b + own_row * kPitch<kD>, tiles.second(tile));
    if constexpr (kAlibi) {
#pragma unroll
      for (int part = 0; part < kTiles; ++part) {
        add_distances<kKeys>(x[part], slope, first_key - at.first_query - 16 * part);
      }
    }
    if (first_key + kKeys - 1 > at.first_query) {
      weigh_queries<kKeys, kDropout, true>(x, dx, at, s, first_key);
    } else {
      weigh_queries<kKeys, kDropout, false>(x, dx, at, s, first_key);
    }
    multiply_by_columns<kD, kKeys, kD>(dq, x, tiles.first(tile));
  }
  const float scales[2] = {s.scale, s.scale};
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    const int row = own_row + 16 * tile;
    store_rows<kD, kD>(p.dq + own + row * s.q_stride, s.q_stride, s.time - first - row, s.head_dim,
                       tiles.own_a + row * kPitch<kD>, dq[tile], scales, 0);
  }
}

template <int kD, bool kDropout, bool kAlibi, class T>
void enqueue(cudaStream_t stream, const BackwardArguments<T>& p) {
  constexpr int kQueries = 32;  // at a time: the sums of keys and values leave no room for more
  constexpr int kKeys = kD <= 64 ? 64 : 32;
  constexpr int kSplit = kD <= 128 ? 1 : 2;
  constexpr int kBlockRows = kRowWarps * 16 * kRowTiles<kD, kDropout, kAlibi>;
  constexpr std::size_t kSharedByKeys = Tiles<T, kD, kQueries, kBlockRows>::kBytes;
  constexpr std::size_t kSharedByQueries = Tiles<T, kD, kKeys, kBlockRows>::kBytes;
  static_assert(std::max(kSharedByKeys, kSharedByQueries) <=
                (kD <= kNarrowHeadDim ? kLeastSharedBytes : kWideBackwardBytes));
  const auto& keys = kernel_of<keys_kernel<T, kD, kQueries, kSplit, kDropout, kAlibi>>;
  const auto& queries = kernel_of<queries_kernel<T, kD, kKeys, kDropout, kAlibi>>;
  permit_shared(keys, kSharedByKeys);
  permit_shared(queries, kSharedByQueries);
  const unsigned blocks = blocks_of(p.s.time, kBlockRows);
  const auto batch = static_cast<unsigned>(p.s.batch);
  launch(keys, dim3(blocks, static_cast<unsigned>(p.s.kv_heads), batch),
         dim3(kRowWarps * kSplit * kWarp), kSharedByKeys, stream, p);
  launch(queries, dim3(blocks, static_cast<unsigned>(p.s.heads), batch), dim3(kRowWarps * kWarp),
         kSharedByQueries, stream, p);
}

}  // namespace

void tiled_attention_backward(cudaStream_t stream, const AttentionBackward& p, const float* delta) {
  const AttentionForward& forward = p.forward;
  by_half_type(forward.q.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arguments = backward_arguments<T>(p, delta);
    by_head_dim(forward.head_dim, [&]<int kD>() {
      by_options(forward, [&]<bool kDropout, bool kAlibi>() {
        enqueue<kD, kDropout, kAlibi>(stream, arguments);
      });
    });
  });
}

}  // namespace trireme::cuda
