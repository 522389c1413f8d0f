#include "src/device/sim/nccl_reduction.h"

#include <algorithm>
#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace sim {
namespace {

// Plain, Bfloat16 and Float16 say with which type numbers of a stored type are computed.
template <class T>
struct Plain {
  using Stored = T;
  static T load(T x) { return x; }
  static T store(T x) { return x; }
};
struct Bfloat16 {
  using Stored = __nv_bfloat16;
  static float load(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __nv_bfloat16 store(float x) { return __float2bfloat16_rn(x); }
};
struct Float16 {
  using Stored = __half;
  static float load(__half x) { return __half2float(x); }
  static __half store(float x) { return __float2half_rn(x); }
};

template <class Work>
void with_type(ncclDataType_t type, Work work) {
  switch (type) {
    case ncclInt8:
      return work(Plain<std::int8_t>());
    case ncclUint8:
      return work(Plain<std::uint8_t>());
    case ncclInt32:
      return work(Plain<std::int32_t>());
    case ncclUint32:
      return work(Plain<std::uint32_t>());
    case ncclInt64:
      return work(Plain<std::int64_t>());
    case ncclUint64:
      return work(Plain<std::uint64_t>());
    case ncclFloat16:
      return work(Float16());
    case ncclFloat32:
      return work(Plain<float>());
    case ncclFloat64:
      return work(Plain<double>());
    case ncclBfloat16:
      return work(Bfloat16());
  }
}

template <class T>
T combine(T a, T b, ncclRedOp_t operation) {
  switch (operation) {
    case ncclSum:
    case ncclAvg:
      return static_cast<T>(a + b);
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
  }
  return a;
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  std::size_t bytes = 0;
  with_type(type, [&](auto kind) { bytes = sizeof(typename decltype(kind)::Stored); });
  return bytes;
}

void reduce_into(std::byte* to, const std::byte* from, std::size_t bytes, ncclDataType_t type,
                 ncclRedOp_t operation) {
  with_type(type, [=](auto kind) {
    using Kind = decltype(kind);
    using Stored = typename Kind::Stored;
    auto* sums = reinterpret_cast<Stored*>(to);
    const auto* terms = reinterpret_cast<const Stored*>(from);
    for (std::size_t at = 0; at < bytes / sizeof(Stored); ++at) {
      sums[at] = Kind::store(combine(Kind::load(sums[at]), Kind::load(terms[at]), operation));
    }
  });
}

void finish_average(std::byte* sums, std::size_t bytes, ncclDataType_t type, int ranks) {
  with_type(type, [=](auto kind) {
    using Kind = decltype(kind);
    using Stored = typename Kind::Stored;
    auto* all = reinterpret_cast<Stored*>(sums);
    for (std::size_t at = 0; at < bytes / sizeof(Stored); ++at) {
      const auto sum = Kind::load(all[at]);
      using Number = std::remove_const_t<decltype(sum)>;
      all[at] = Kind::store(static_cast<Number>(sum / static_cast<Number>(ranks)));
    }
  });
}

}  // namespace sim
