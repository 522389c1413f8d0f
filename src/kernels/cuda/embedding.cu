// Defines the kernels of the token embedding. An id outside the vocabulary accesses no memory:
// forward fills its row with NaN, which the loss then shows, and backward skips it. The dataset's
// reader has already refused such ids, so this is only a safeguard, and it needs no answer from the
// device to the host.
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/each.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/row_sort.h"

namespace trireme::cuda {
namespace {

constexpr int kThreads = 128;

template <class T>
struct Lookup {
  T* out;
  const std::int32_t* ids;
  const T* token;     // [held, channels]
  const T* position;  // or null
  std::int64_t time;
  std::int64_t channels;
  std::int64_t first_position;
  std::int64_t first_id;
  std::int64_t held;
  float absent;  // what rows hold whose id is not among the held ones
};

// A block takes one row.
template <class T, bool kWide>
__global__ void __launch_bounds__(kThreads) lookup_kernel(const Lookup<T> p) {
  constexpr int kCount = kPerAccess<T>;
  const std::int64_t row = blockIdx.x;
  const std::int64_t id = p.ids[row] - p.first_id;
  const std::int64_t position = p.first_position + row % p.time;
  const bool here = id >= 0 && id < p.held;
  for (std::int64_t i = threadIdx.x * kCount; i < p.channels; i += kThreads * kCount) {
    const std::int64_t left = p.channels - i;
    Floats<kCount> x;
#pragma unroll
    for (float& v : x.x) {
      v = p.absent;
    }
    if (here) {
      x = load<kCount, kWide>(p.token + id * p.channels + i, left);
      if (p.position != nullptr) {
        const auto shift = load<kCount, kWide>(p.position + position * p.channels + i, left);
#pragma unroll
        for (int j = 0; j < kCount; ++j) {
          x.x[j] += shift.x[j];
        }
      }
    }
    store<kWide>(p.out + row * p.channels + i, x, left);
  }
}

template <class T>
struct TokenGradient {
  float* dtoken;            // [held, channels]
  const T* dout;            // [rows, channels]
  const SortedRow* sorted;  // [rows]
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t held;
  std::int64_t pieces;  // of the channels, each for one warp

  // Returns the sorted row at a place, or one without an id behind the last.
  __device__ SortedRow at(std::int64_t place) const {
    return place < rows ? sorted[place] : SortedRow{0xFFFFFFFFU, -1};
  }
};

// Returns how many of the lanes from 0 on are in the set.
__device__ int leading(unsigned lanes) { return lanes == kAllLanes ? kWarp : __ffs(~lanes) - 1; }

constexpr int kRun = 8;     // sorted rows per warp
constexpr int kLoaded = 4;  // rows at a time

// A warp takes the ids whose first rows are in its run of sorted rows, and adds the rows of each in
// their order. Ids that have kWarp rows or more are left to many_rows_kernel.
template <class T, bool kWide>
__global__ void __launch_bounds__(kThreads) few_rows_kernel(const TokenGradient<T> p) {
  constexpr int kCount = kPerAccess<T>;
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kWarp);
  const std::int64_t warp =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  const std::int64_t begin = warp / p.pieces * kRun;
  const std::int64_t end = min(begin + kRun, p.rows);
  const std::int64_t i = (warp % p.pieces * kWarp + lane) * kCount;
  const std::int64_t left = p.channels - i;  // 0 or less: the thread has no channels
  int count = 0;
  for (std::int64_t first = begin; first < end; first += count) {
    const SortedRow own = p.at(first + lane);
    const std::uint32_t id = __shfl_sync(kAllLanes, own.id, 0);
    count = leading(__ballot_sync(kAllLanes, own.id == id ? 1 : 0));
    const bool is_first = first > begin || first == 0 || p.sorted[first - 1].id != id;
    if (!is_first || count == kWarp || id >= p.held) {
      continue;
    }
    float* const to = p.dtoken + id * p.channels + i;
    auto sum = left > 0 ? load<kCount, kWide>(to, left) : Floats<kCount>{};
    for (int begun = 0; begun < count; begun += kLoaded) {
      Floats<kCount> x[kLoaded];
#pragma unroll
      for (int n = 0; n < kLoaded; ++n) {
        const std::int64_t row = __shfl_sync(kAllLanes, own.row, begun + n);
        x[n] = begun + n < count && left > 0
                   ? load<kCount, kWide>(p.dout + row * p.channels + i, left)
                   : Floats<kCount>{};
      }
#pragma unroll
      for (int n = 0; n < kLoaded; ++n) {
        if (begun + n < count) {
#pragma unroll
          for (int j = 0; j < kCount; ++j) {
            sum.x[j] += x[n].x[j];
          }
        }
      }
    }
    if (left > 0) {
      store<kWide>(to, sum, left);
    }
  }
}

constexpr int kManyWarps = 2;
constexpr int kStages = 4;        // of kWarp rows each, in shared memory
constexpr int kPieceBytes = 128;  // of a row

// Copies rows of an id to shared memory, a stage at a time. A warp has one.
template <class T, bool kWide>
class RowFetcher {
 public:
  static constexpr int kPiece = kPieceBytes / static_cast<int>(sizeof(T));  // channels
  static constexpr int kOwn = kPiece / kWarp;                               // of each lane
  using Stage = T[kWarp][kPiece];

  __device__ RowFetcher(const TokenGradient<T>& p, std::int64_t first, std::int64_t channel)
      : p_(p),
        first_(first),
        channel_(channel),
        id_(p.sorted[first].id),
        next_(p.at(first + lane())) {}

  static __device__ int lane() { return static_cast<int>(threadIdx.x % kWarp); }
  // Returns the rows that were fetched so far.
  __device__ std::int64_t fetched() const { return fetched_; }

  // Begins to copy the next rows, if there are any, as one group of copies.
  __device__ void fetch(Stage& to) {
    if (more_) {
      const std::int32_t row = next_.row;
      const int count = leading(__ballot_sync(kAllLanes, next_.id == id_ ? 1 : 0));
      fetched_ += count;
      more_ = count == kWarp;
      next_ = p_.at(first_ + fetched_ + lane());
      copy(to, row, count);
    }
    commit_copies();
  }

 private:
  __device__ void copy(Stage& to, std::int32_t row, int count) const {
    constexpr int kCount = kPerAccess<T>;
    constexpr int kAccesses = kPiece / kCount;  // per row
    constexpr int kAtOnce = kWarp / kAccesses;  // rows
    if constexpr (kWide) {
      const int at = lane() % kAccesses * kCount;
#pragma unroll
      for (int n = lane() / kAccesses; n < kWarp; n += kAtOnce) {
        const std::int64_t from = __shfl_sync(kAllLanes, row, n);
        if (n < count && channel_ + at < p_.channels) {
          copy_async_16(&to[n][at], p_.dout + from * p_.channels + channel_ + at);
        }
      }
    } else {
      for (int n = 0; n < count; ++n) {
        const std::int64_t from = __shfl_sync(kAllLanes, row, n);
#pragma unroll
        for (int j = lane(); j < kPiece; j += kWarp) {
          if (channel_ + j < p_.channels) {
            to[n][j] = p_.dout[from * p_.channels + channel_ + j];
          }
        }
      }
    }
  }

  const TokenGradient<T>& p_;
  std::int64_t first_;    // place of the id's first row
  std::int64_t channel_;  // the piece's first
  std::uint32_t id_;
  SortedRow next_;  // this lane's of the next stage
  std::int64_t fetched_ = 0;
  bool more_ = true;
};

// Looks at the id of the row at place `border` of the sorted rows. If the id has kWarp rows or
// more, of which the first is less than kWarp places before the border, returns that row's place;
// else -1. Borders are kWarp places apart, so that exactly one of them finds each such id.
template <class T>
__device__ std::int64_t first_of_many(const TokenGradient<T>& p, std::int64_t border) {
  const std::uint32_t id = p.sorted[border].id;
  if (id >= p.held || (border > 0 && p.sorted[border - kWarp].id == id)) {
    return -1;
  }
  const std::int64_t place = border - (kWarp - 1) + static_cast<std::int64_t>(threadIdx.x % kWarp);
  const bool alike = place >= 0 && p.sorted[place].id == id;
  const std::int64_t first =
      border - kWarp + __ffs(static_cast<int>(__ballot_sync(kAllLanes, alike ? 1 : 0)));
  return p.at(first + kWarp - 1).id == id ? first : -1;
}

// A warp takes a piece of the channels of an id that has many rows, if there is one at its border.
template <class T, bool kWide>
__global__ void __launch_bounds__(kManyWarps* kWarp) many_rows_kernel(const TokenGradient<T> p) {
  using Fetcher = RowFetcher<T, kWide>;
  __shared__ __align__(16) T rows[kManyWarps][kStages][kWarp][Fetcher::kPiece];
  const auto warp = static_cast<int>(threadIdx.x / kWarp);
  const std::int64_t unit = static_cast<std::int64_t>(blockIdx.x) * kManyWarps + warp;
  const std::int64_t border = unit / p.pieces * kWarp;
  const std::int64_t first = border < p.rows ? first_of_many(p, border) : -1;
  if (first < 0) {
    return;
  }
  const std::int64_t channel = unit % p.pieces * Fetcher::kPiece;
  Fetcher fetcher(p, first, channel);
  for (int stage = 0; stage < kStages - 1; ++stage) {
    fetcher.fetch(rows[warp][stage]);
  }
  const int own = Fetcher::lane() * Fetcher::kOwn;
  const std::int64_t left = p.channels - channel - own;
  float* const to = p.dtoken + p.sorted[first].id * p.channels + channel + own;
  auto sum = load<Fetcher::kOwn, false>(to, left);
  int stage = 0;
  for (std::int64_t added = 0; added < fetcher.fetched(); added += kWarp) {
    fetcher.fetch(rows[warp][(stage + kStages - 1) % kStages]);
    wait_copies<kStages - 1>();
    __syncwarp();
    const auto count = static_cast<int>(min(fetcher.fetched() - added, std::int64_t{kWarp}));
#pragma unroll 8
    for (int n = 0; n < count; ++n) {
      const auto x = load<Fetcher::kOwn, true>(&rows[warp][stage][n][own], Fetcher::kOwn);
#pragma unroll
      for (int j = 0; j < Fetcher::kOwn; ++j) {
        sum.x[j] += x.x[j];
      }
    }
    __syncwarp();  // before the stage is overwritten
    stage = (stage + 1) % kStages;
  }
  store<false>(to, sum, left);
}

template <class T>
struct PositionGradient {
  static constexpr int kCount = 4;
  float* dposition;
  const T* dout;
  std::int64_t count;  // positions * channels
  std::int64_t batch;
  std::int64_t time;
  std::int64_t channels;
  bool wide;  // if so, kCount elements are of one position

  template <bool kWide>
  __device__ void run(std::int64_t i) const {
    const std::int64_t per_sample = time * channels;
    Floats<kCount> sum{};
    const std::int64_t samples = i < per_sample ? batch : 0;  // 0 beyond the sequence
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      const auto x = load<kCount, kWide>(dout + sample * per_sample + i, per_sample - i);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        sum.x[j] += x.x[j];
      }
    }
    store<kWide>(dposition + i, sum, count - i);
  }
};

template <class T>
void add_tokens(Stream& on, const EmbeddingBackward& p) {
  const std::int64_t rows = p.batch * p.time;
  const std::int64_t held = p.dtoken.count / p.channels;
  const auto pieces_of = [&](std::int64_t channels) {
    return (p.channels + channels - 1) / channels;
  };
  TokenGradient<T> arguments{.dtoken = device_pointer<float>(p.dtoken),
                             .dout = device_pointer<T>(p.dout),
                             .sorted = sort_rows(on, {.ids = device_pointer<std::int32_t>(p.ids),
                                                      .rows = rows,
                                                      .first_id = p.first_id,
                                                      .held = held}),
                             .rows = rows,
                             .channels = p.channels,
                             .held = held,
                             .pieces = pieces_of(RowFetcher<T, true>::kPiece)};
  const bool wide =
      aligned_rows(p.channels * static_cast<std::int64_t>(sizeof(T)), {p.dtoken.data, p.dout.data});
  by_bool(wide, [&](auto is_wide) {
    constexpr bool kWide = decltype(is_wide)::value;
    if (rows >= kWarp) {
      const std::int64_t borders = (rows + kWarp - 1) / kWarp;
      launch(kernel_of<many_rows_kernel<T, kWide>>,
             dim3(blocks_of(borders * arguments.pieces, kManyWarps)), dim3(kManyWarps * kWarp), 0,
             cuda_stream(on), arguments);
    }
    arguments.pieces = pieces_of(kWarp * kPerAccess<T>);
    const std::int64_t runs = (rows + kRun - 1) / kRun;
    launch(kernel_of<few_rows_kernel<T, kWide>>,
           dim3(blocks_of(runs * arguments.pieces, kThreads / kWarp)), dim3(kThreads), 0,
           cuda_stream(on), arguments);
  });
}

}  // namespace

void embedding_forward(Stream& stream, const EmbeddingForward& p) {
  if (p.batch * p.time == 0) {
    return;
  }
  by_type(p.out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Lookup<T> arguments{.out = device_pointer<T>(p.out),
                              .ids = device_pointer<std::int32_t>(p.ids),
                              .token = device_pointer<T>(p.token),
                              .position = device_pointer<T>(p.position),
                              .time = p.time,
                              .channels = p.channels,
                              .first_position = p.first_position,
                              .first_id = p.first_id,
                              .held = p.token.count / p.channels,
                              .absent = p.partial ? 0.0F : NAN};
    const bool wide = aligned_rows(p.channels * static_cast<std::int64_t>(sizeof(T)),
                                   {p.out.data, p.token.data, p.position.data});
    by_bool(wide, [&](auto is_wide) {
      launch(kernel_of<lookup_kernel<T, decltype(is_wide)::value>>,
             dim3(blocks_of(p.batch * p.time, 1)), dim3(kThreads), 0, cuda_stream(stream),
             arguments);
    });
  });
}

void embedding_backward(Stream& stream, const EmbeddingBackward& p) {
  by_type(p.dout.dtype, [&](auto zero) {
    using T = decltype(zero);
    if (!p.dtoken.empty() && p.batch * p.time > 0) {
      add_tokens<T>(stream, p);
    }
    if (!p.dposition.empty()) {
      each(stream, PositionGradient<T>{.dposition = device_pointer<float>(p.dposition),
                                       .dout = device_pointer<T>(p.dout),
                                       .count = p.dposition.count,
                                       .batch = p.batch,
                                       .time = p.time,
                                       .channels = p.channels,
                                       .wide = p.time * p.channels % kPerAccess<T> == 0 &&
                                               aligned({p.dposition.data, p.dout.data})});
    }
  });
}

}  // namespace trireme::cuda
