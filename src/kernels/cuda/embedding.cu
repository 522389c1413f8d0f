// Defines the kernels of the token embedding. An id outside the vocabulary accesses no memory:
// forward fills its row with NaN, which the loss then shows, and backward skips it. The dataset's
// reader has already refused such ids, so this is only a safeguard, and it needs no answer from the
// device to the host.
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/block_sums.h"
#include "src/kernels/cuda/each.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/outcome.h"
#include "src/kernels/cuda/scratch.h"

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

// The rows of each id form a list in the order of the rows.
struct Lists {
  const std::int32_t* ids;
  std::int32_t* next;      // [rows]: the next row with the same id, or -1
  std::int32_t* has_prev;  // [rows]: 1 if an earlier row has the same id; else stays 0
  std::int64_t rows;
};

constexpr int kSearched = 8;  // ids per lane and step

// A warp takes one row, and searches the rows after it.
__global__ void __launch_bounds__(kThreads) list_kernel(const Lists p) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (row >= p.rows) {
    return;
  }
  const auto lane = static_cast<std::int64_t>(threadIdx.x % kWarp);
  const std::int32_t id = p.ids[row];
  const auto none = static_cast<std::int32_t>(p.rows);
  std::int32_t found = none;
  for (std::int64_t from = row + 1; from < p.rows && found == none; from += kWarp * kSearched) {
#pragma unroll
    for (int j = kSearched - 1; j >= 0; --j) {
      const std::int64_t at = from + j * kWarp + lane;
      found = at < p.rows && p.ids[at] == id ? static_cast<std::int32_t>(at) : found;
    }
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      found = min(found, __shfl_xor_sync(kAllLanes, found, distance));
    }
  }
  if (lane == 0) {
    p.next[row] = found == none ? -1 : found;
    if (found != none) {
      p.has_prev[found] = 1;
    }
  }
}

template <class T>
struct TokenGradient {
  float* dtoken;
  const T* dout;
  const std::int32_t* ids;
  const std::int32_t* next;
  const std::int32_t* has_prev;
  std::int64_t rows;
  std::int64_t channels;
  std::int64_t first_id;
  std::int64_t held;
};

// A list is followed for this many rows. If it is longer, its other rows are looked for among all
// that follow, because many rows can then be loaded at a time.
constexpr int kFollowed = 16;
constexpr int kScanned = 8;  // ids per thread and step
constexpr int kLoaded = 8;   // rows at a time

// Writes the rows from `begin` on, of a step's number, that have the id to `found`, in ascending
// order, and returns how many they are. For the whole block; contains barriers.
__device__ int find_rows(const std::int32_t* ids, std::int32_t id, std::int64_t begin,
                         std::int64_t rows, std::int32_t* found, int* counts) {
  const auto thread = static_cast<int>(threadIdx.x);
  const std::int64_t own = begin + thread * kScanned;
  bool here[kScanned];
  int count = 0;
#pragma unroll
  for (int j = 0; j < kScanned; ++j) {
    here[j] = own + j < rows && ids[own + j] == id;
    count += here[j] ? 1 : 0;
  }
  counts[thread] = count;
  __syncthreads();
  int place = 0;
  int total = 0;
  for (int other = 0; other < kThreads; ++other) {
    place = other == thread ? total : place;
    total += counts[other];
  }
#pragma unroll
  for (int j = 0; j < kScanned; ++j) {
    if (here[j]) {
      found[place++] = static_cast<std::int32_t>(own + j);
    }
  }
  __syncthreads();
  return total;
}

// The block of the first row of an id adds all rows of that id, in their order.
template <class T, bool kWide>
__global__ void __launch_bounds__(kThreads) token_gradient_kernel(const TokenGradient<T> p) {
  constexpr int kCount = kPerAccess<T>;
  __shared__ std::int32_t found[kThreads * kScanned];
  __shared__ int counts[kThreads];
  const auto first = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t token = p.ids[first];
  const std::int64_t id = token - p.first_id;
  if (p.has_prev[first] != 0 || id < 0 || id >= p.held) {
    return;
  }
  for (std::int64_t base = 0; base < p.channels; base += kThreads * kCount) {
    const std::int64_t i = base + static_cast<std::int64_t>(threadIdx.x) * kCount;
    const std::int64_t left = p.channels - i;  // 0 or less: the thread has no channels
    float* const to = p.dtoken + id * p.channels + i;
    auto sum = left > 0 ? load<kCount, kWide>(to, left) : Floats<kCount>{};
    const auto row_of = [&](std::int32_t row) {
      return left > 0 ? load<kCount, kWide>(p.dout + row * p.channels + i, left) : Floats<kCount>{};
    };
    const auto add = [&](const Floats<kCount>& x) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        sum.x[j] += x.x[j];
      }
    };
    std::int32_t row = first;
    for (int followed = 0; row >= 0 && followed < kFollowed; ++followed) {
      add(row_of(row));
      row = p.next[row];
    }
    for (std::int64_t begin = row; row >= 0 && begin < p.rows; begin += kThreads * kScanned) {
      const int count = find_rows(p.ids, token, begin, p.rows, found, counts);
      int n = 0;
      for (; n + kLoaded <= count; n += kLoaded) {
        Floats<kCount> x[kLoaded];
#pragma unroll
        for (int ahead = 0; ahead < kLoaded; ++ahead) {
          x[ahead] = row_of(found[n + ahead]);
        }
#pragma unroll
        for (const auto& each : x) {
          add(each);
        }
      }
      for (; n < count; ++n) {
        add(row_of(found[n]));
      }
      __syncthreads();  // before `found` is overwritten
    }
    if (left > 0) {
      store<kWide>(to, sum, left);
    }
  }
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
  check(rows < std::int64_t{1} << 31, "a batch has fewer than 2^31 tokens");
  auto* const next = scratch_of<std::int32_t>(on, 2 * rows);
  const cudaStream_t stream = cuda_stream(on);
  auto* const has_prev = next + rows;
  const auto* const ids = device_pointer<std::int32_t>(p.ids);
  require(
      cudaMemsetAsync(has_prev, 0, static_cast<std::size_t>(rows) * sizeof(std::int32_t), stream),
      "cannot clear memory for the embedding's gradient");
  launch(list_kernel, dim3(blocks_of(rows, kThreads / kWarp)), dim3(kThreads), 0, stream,
         Lists{.ids = ids, .next = next, .has_prev = has_prev, .rows = rows});
  const TokenGradient<T> arguments{.dtoken = device_pointer<float>(p.dtoken),
                                   .dout = device_pointer<T>(p.dout),
                                   .ids = ids,
                                   .next = next,
                                   .has_prev = has_prev,
                                   .rows = rows,
                                   .channels = p.channels,
                                   .first_id = p.first_id,
                                   .held = p.dtoken.count / p.channels};
  const bool wide =
      aligned_rows(p.channels * static_cast<std::int64_t>(sizeof(T)), {p.dtoken.data, p.dout.data});
  by_bool(wide, [&](auto is_wide) {
    launch(token_gradient_kernel<T, decltype(is_wide)::value>, dim3(blocks_of(rows, 1)),
           dim3(kThreads), 0, stream, arguments);
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
      launch(lookup_kernel<T, decltype(is_wide)::value>, dim3(blocks_of(p.batch * p.time, 1)),
             dim3(kThreads), 0, cuda_stream(stream), arguments);
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
