// Flash attention, backward (Dao, 2023), in two passes, so that no sum is shared between blocks:
// one block computes the gradients of 64 keys and values from all queries that read them, and
// another those of 64 queries. With P = exp(scale q k - lse) and dropout's factor Z: dv = sum of P
// Z dout; dS = P (Z dout v - delta); dq = scale sum of dS k; dk = scale sum of dS q.
#include "src/kernels/cuda/attention_tiles.h"

namespace trireme::cuda {
namespace {

// Four tiles in shared memory: two of the block's own rows, and two of the rows that it reads in
// turn, twice each, so that the next ones can be copied while some are in use.
template <class T, int kD, int kRead>
struct Tiles {
  T* own_a;
  T* own_b;
  T* a;
  T* b;
  float* of_row;  // [2, 2, kRead]: lse and delta of queries that are read
  static constexpr std::size_t kBytes =
      sizeof(T) * (2 * kTileRows + 4 * kRead) * kPitch<kD> + sizeof(float) * 4 * kRead;
  __device__ explicit Tiles(T* memory)
      : own_a(memory),
        own_b(own_a + kTileRows * kPitch<kD>),
        a(own_b + kTileRows * kPitch<kD>),
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

// Turns scores into P Z, and the products of dout and v into dS.
template <int kQueries, bool kDropout>
__device__ void weigh_keys(float (&x)[kQueries / 8][4], float (&dx)[kQueries / 8][4],
                           const KeyPlace& at, const AttentionSizes& s, const float* lse,
                           const float* delta) {
  const PhiloxKey seed = kDropout ? philox_key(s.dropout.seed_of(at.head)) : PhiloxKey{};
#pragma unroll
  for (int n = 0; n < kQueries / 8; ++n) {
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int column = n * 8 + lane_column() + j;
      const int query = at.first_query + column;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int key = at.first_key + lane_row() + 8 * half;
        float& score = x[n][2 * half + j];
        float& slope = dx[n][2 * half + j];
        const float power = exp2f(score * s.scale * kLog2E - lse[column] * kLog2E);
        const float weight = key <= query ? power : 0.0F;
        const float factor = factor_of<kDropout>(s.dropout, seed, at.sample, query, key);
        score = weight * factor;
        slope = weight * (factor * slope - delta[column]);
      }
    }
  }
}

// The turns of a block that takes 64 keys: the tiles of queries from those keys on, for each of the
// heads that read them.
template <class T, int kD, int kQueries>
struct KeyTurns {
  const BackwardArguments<T>& p;
  Tiles<T, kD, kQueries> tiles;
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
      tiles.lse(turn)[i] = i < left ? p.lse[at] : INFINITY;  // makes weights 0
      tiles.delta(turn)[i] = i < left ? p.delta[at] : 0.0F;
    }
  }
};

// A block takes 64 keys: each warp 16 of them and kD / kSplit of their channels.
template <class T, int kD, int kQueries, int kSplit, bool kDropout>
__global__ void __launch_bounds__(kRowWarps* kSplit* kWarp)
    keys_kernel(const BackwardArguments<T> p) {
  constexpr int kChannels = kD / kSplit;
  const AttentionSizes& s = p.s;
  const int first = static_cast<int>(blockIdx.x) * kTileRows;
  const int warp = static_cast<int>(threadIdx.x / kWarp);
  const int own_row = warp % kRowWarps * 16;
  const int channel = warp / kRowWarps * kChannels;
  const KeyTurns<T, kD, kQueries> turns(p, first);
  const Tiles<T, kD, kQueries>& tiles = turns.tiles;
  const std::int64_t own =
      (static_cast<std::int64_t>(turns.sample) * s.time + first) * s.kv_stride +
      static_cast<std::int64_t>(turns.kv_head) * s.head_dim;
  start_rows<kD, kTileRows>(tiles.own_a, p.k + own, s.kv_stride, s.time - first, s.head_dim);
  start_rows<kD, kTileRows>(tiles.own_b, p.v + own, s.kv_stride, s.time - first, s.head_dim);
  turns.start(0);
  commit_copies();
  float dk[kChannels / 8][4] = {};
  float dv[kChannels / 8][4] = {};
  for (int turn = 0; turn < turns.count(); ++turn) {
    if (turn + 1 < turns.count()) {
      turns.start(turn + 1);
    }
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    float x[kQueries / 8][4] = {};
    float dx[kQueries / 8][4] = {};
    multiply_by_rows<kD, kQueries>(x, tiles.own_a + own_row * kPitch<kD>, tiles.first(turn));
    multiply_by_rows<kD, kQueries>(dx, tiles.own_b + own_row * kPitch<kD>, tiles.second(turn));
    const KeyPlace at{.first_key = first + own_row,
                      .first_query = turns.begin(turn),
                      .head = turns.head(turn),
                      .sample = turns.sample};
    weigh_keys<kQueries, kDropout>(x, dx, at, s, tiles.lse(turn), tiles.delta(turn));
    multiply_by_columns<kD, kQueries, kChannels>(dv, x, tiles.second(turn) + channel);
    multiply_by_columns<kD, kQueries, kChannels>(dk, dx, tiles.first(turn) + channel);
    __syncthreads();
  }
  wait_copies<0>();
  const float scales[2] = {s.scale, s.scale};
  const float ones[2] = {1, 1};
  const int left = s.time - first - own_row;
  const std::int64_t to = own + own_row * s.kv_stride;
  store_rows<kD, kChannels>(p.dk + to, s.kv_stride, left, s.head_dim,
                            tiles.own_a + own_row * kPitch<kD>, dk, scales, channel);
  store_rows<kD, kChannels>(p.dv + to, s.kv_stride, left, s.head_dim,
                            tiles.own_b + own_row * kPitch<kD>, dv, ones, channel);
}

// Says which elements a lane has in the pass over queries: rows are queries, columns are keys.
struct QueryPlace {
  int query[2];
  float lse[2];
  float delta[2];
  int head;
  int sample;
};

// Turns scores and the products of dout and v into dS, in x.
template <int kKeys, bool kDropout>
__device__ void weigh_queries(float (&x)[kKeys / 8][4], const float (&dx)[kKeys / 8][4],
                              const QueryPlace& at, const AttentionSizes& s, int first_key) {
  const PhiloxKey seed = kDropout ? philox_key(s.dropout.seed_of(at.head)) : PhiloxKey{};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int key = first_key + n * 8 + lane_column() + j;
        float& score = x[n][2 * half + j];
        const float power = exp2f(score * s.scale * kLog2E - at.lse[half] * kLog2E);
        const float weight = key <= at.query[half] ? power : 0.0F;
        const float factor = factor_of<kDropout>(s.dropout, seed, at.sample, at.query[half], key);
        score = weight * (factor * dx[n][2 * half + j] - at.delta[half]);
      }
    }
  }
}

// A block takes 64 queries, each warp 16 of them.
template <class T, int kD, int kKeys, bool kDropout>
__global__ void __launch_bounds__(kRowWarps* kWarp) queries_kernel(const BackwardArguments<T> p) {
  const AttentionSizes& s = p.s;
  const Tiles<T, kD, kKeys> tiles(dynamic_shared<T>());
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kTileRows;
  const int head = static_cast<int>(blockIdx.y);
  const int sample = static_cast<int>(blockIdx.z);
  const int own_row = static_cast<int>(threadIdx.x / kWarp) * 16;
  const int keys = min(s.time, first + kTileRows);
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
  };
  start_rows<kD, kTileRows>(tiles.own_a, p.q + own, s.q_stride, s.time - first, s.head_dim);
  start_rows<kD, kTileRows>(tiles.own_b, p.dout + (rows + first) * out_stride + of_head, out_stride,
                            s.time - first, s.head_dim);
  start(0);
  commit_copies();
  QueryPlace at{.query = {}, .lse = {}, .delta = {}, .head = head, .sample = sample};
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    at.query[half] = first + own_row + lane_row() + 8 * half;
    const bool here = at.query[half] < s.time;
    const std::int64_t row =
        (static_cast<std::int64_t>(sample) * s.heads + head) * s.time + at.query[half];
    at.lse[half] = here ? p.lse[row] : INFINITY;  // makes weights 0
    at.delta[half] = here ? p.delta[row] : 0.0F;
  }
  float dq[kD / 8][4] = {};
  for (int tile = 0; tile < count; ++tile) {
    if (tile + 1 < count) {
      start(tile + 1);
    }
    commit_copies();
    wait_copies<1>();
    __syncthreads();
    float x[kKeys / 8][4] = {};
    float dx[kKeys / 8][4] = {};
    multiply_by_rows<kD, kKeys>(x, tiles.own_a + own_row * kPitch<kD>, tiles.first(tile));
    multiply_by_rows<kD, kKeys>(dx, tiles.own_b + own_row * kPitch<kD>, tiles.second(tile));
    weigh_queries<kKeys, kDropout>(x, dx, at, s, tile * kKeys);
    multiply_by_columns<kD, kKeys, kD>(dq, x, tiles.first(tile));
    __syncthreads();
  }
  wait_copies<0>();
  const float scales[2] = {s.scale, s.scale};
  store_rows<kD, kD>(p.dq + own + own_row * s.q_stride, s.q_stride, s.time - first - own_row,
                     s.head_dim, tiles.own_a + own_row * kPitch<kD>, dq, scales, 0);
}

template <int kD, bool kDropout, class T>
void enqueue(cudaStream_t stream, const BackwardArguments<T>& p) {
  constexpr int kRead = kD <= 64 ? 64 : 32;
  constexpr int kSplit = kD <= 128 ? 1 : 2;
  constexpr std::size_t kShared = Tiles<T, kD, kRead>::kBytes;
  const auto keys = keys_kernel<T, kD, kRead, kSplit, kDropout>;
  const auto queries = queries_kernel<T, kD, kRead, kDropout>;
  permit_shared(keys, kShared);
  permit_shared(queries, kShared);
  const unsigned blocks = blocks_of(p.s.time, kTileRows);
  const auto batch = static_cast<unsigned>(p.s.batch);
  launch(keys, dim3(blocks, static_cast<unsigned>(p.s.kv_heads), batch),
         dim3(kRowWarps * kSplit * kWarp), kShared, stream, p);
  launch(queries, dim3(blocks, static_cast<unsigned>(p.s.heads), batch), dim3(kRowWarps * kWarp),
         kShared, stream, p);
}

}  // namespace

void tiled_attention_backward(cudaStream_t stream, const AttentionBackward& p, const float* delta) {
  const AttentionForward& forward = p.forward;
  by_half_type(forward.q.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto arguments = backward_arguments<T>(p, delta);
    by_head_dim(forward.head_dim, [&]<int kD>() {
      if (forward.dropout.probability > 0) {
        enqueue<kD, true>(stream, arguments);
      } else {
        enqueue<kD, false>(stream, arguments);
      }
    });
  });
}

}  // namespace trireme::cuda
