// Products of a warpgroup on Hopper's matrix units (wgmma), for nvcc. The other version of this
// header, src/device/sim/include/cuda_warpgroup.h, has the same names for the simulated device.
//
// A warpgroup is four warps, the first of which has a number that is a multiple of four. It
// multiplies tiles of bf16 or f16 in shared memory asynchronously. A tile is made of rows of 64
// elements, 128 bytes, from an address that is a multiple of 1,024 on; the chunk of 16 bytes that
// would be number c of row r lies at number c ^ (r % 8), so that reading eight rows meets no bank
// twice (swizzled_chunk()). Rows of 128 elements are two tiles of 64, kApart bytes apart.
//
// The result of a warpgroup has 64 rows, 16 for each warp. The element d[n][2 * half + j] of a lane
// is in row lane / 4 + 8 * half of its warp and column 8 * n + lane % 4 * 2 + j, and a fragment of
// the left operand has the order of mma()'s.
//
// A product reads its operands and writes its result until wait_products() has returned; until then
// nobody may touch them. Arrays that hold the results and fragments of products are named to
// start_products() and wait_products(), so that the compiler moves no access past these.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <nv/target>

namespace trireme::cuda {

// Whether this program holds code for warpgroups, which runs on devices of the compute capability
// 9.0 only.
inline constexpr bool kHasWarpgroups = TRIREME_WARPGROUP_CODE;
inline constexpr int kWarpgroupCapability = 9;

// Code for other compute capabilities, which nvcc makes of every kernel, is never run.
#define TRIREME_WARPGROUPS(...) \
  NV_IF_ELSE_TARGET(NV_HAS_FEATURE_SM_90a, (__VA_ARGS__;), (__trap();))

inline constexpr int kSwizzledRow = 128;  // bytes

// Returns where chunk `chunk` of 16 bytes lies, in bytes from the tile's first row.
__device__ inline int swizzled_chunk(int row, int chunk) {
  return row * kSwizzledRow + (chunk ^ row % 8) * 16;
}

// Returns the block's dynamic shared memory, aligned to 1,024 bytes for tiles.
__device__ inline unsigned char* dynamic_tiles() {
  extern __shared__ __align__(1024) unsigned char dynamic_tile_bytes[];
  return dynamic_tile_bytes;
}

// An operand in shared memory, as wgmma's descriptor of a matrix with a swizzle of 128 bytes.
struct TileOperand {
  std::uint64_t descriptor;
};

// tile: the first row; apart: bytes between two tiles of 64 columns, where products by columns
// cross them.
__device__ inline TileOperand tile_operand(const void* tile, std::uint32_t apart = 1024) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
  constexpr std::uint64_t kEightRows = (8 * kSwizzledRow) >> 4;
  constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
  return {kSwizzle128 | kEightRows << 32 | static_cast<std::uint64_t>(apart >> 4) << 16 |
          (address & 0x3FFFFu) >> 4};
}
// Returns the operand that begins `bytes` later: 32 for the next 16 columns, and 2,048 for the next
// 16 rows.
__device__ inline TileOperand operator+(TileOperand operand, std::uint32_t bytes) {
  return {operand.descriptor + (bytes >> 4)};
}

template <int kCount>
__device__ inline void pin(float (&x)[kCount][4]) {
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    asm volatile("" : "+f"(x[n][0]), "+f"(x[n][1]), "+f"(x[n][2]), "+f"(x[n][3])::"memory");
  }
}
template <int kCount>
__device__ inline void pin(std::uint32_t (&x)[kCount][4]) {
#pragma unroll
  for (int n = 0; n < kCount; ++n) {
    asm volatile("" : "+r"(x[n][0]), "+r"(x[n][1]), "+r"(x[n][2]), "+r"(x[n][3])::"memory");
  }
}

// Lets products that are queued next read what the calling thread has stored in shared memory or
// copied there, once a barrier has followed.
__device__ inline void show_to_products() {
  TRIREME_WARPGROUPS(asm volatile("fence.proxy.async.shared::cta;" ::: "memory"));
}

// Begins to queue products, whose results and fragments are named.
template <class... Arrays>
__device__ inline void start_products(Arrays&... arrays) {
  (pin(arrays), ...);
  TRIREME_WARPGROUPS(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"));
}
// Ends a group of products.
__device__ inline void commit_products() {
  TRIREME_WARPGROUPS(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"));
}
// Waits until at most kPending groups of the warpgroup are under way; `arrays` are the results and
// fragments of those that have ended.
template <int kPending, class... Arrays>
__device__ inline void wait_products(Arrays&... arrays) {
  TRIREME_WARPGROUPS(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory"));
  (pin(arrays), ...);
}

// Products of one step of 16 along the sums, for results of kColumns columns. The right operand is
// read by rows (row n of its tile is column n of the product's right matrix) or by columns (row k
// of its tile is row k of that matrix). add: 0 sets d, 1 adds to it.
template <class T, int kColumns>
struct WarpgroupProduct;

// clang-format off
#define TRIREME_4(d, n) "+f"(d[n][0]), "+f"(d[n][1]), "+f"(d[n][2]), "+f"(d[n][3])
#define TRIREME_16(d, n) TRIREME_4(d, n), TRIREME_4(d, n + 1), TRIREME_4(d, n + 2), \
                         TRIREME_4(d, n + 3)
#define TRIREME_32(d) TRIREME_16(d, 0), TRIREME_16(d, 4)
#define TRIREME_64(d) TRIREME_32(d), TRIREME_16(d, 8), TRIREME_16(d, 12)
#define TRIREME_NAMES_32                                                                       \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"     \
  "%24,%25,%26,%27,%28,%29,%30,%31"
#define TRIREME_NAMES_64 TRIREME_NAMES_32                                                      \
  ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,"  \
  "%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define TRIREME_WGMMA(columns, type, names, left, right, add, by_columns)                      \
  "{.reg .pred add; setp.ne.b32 add, %" #add ", 0;\n"                                          \
  "wgmma.mma_async.sync.aligned.m64n" #columns "k16.f32." type "." type " {" names "}, "       \
  left ", %" #right ", add, 1, 1, " by_columns ";}"
// a..g: the numbers of the operands behind the results.
#define TRIREME_PRODUCTS(T, type, columns, names, results, a, b, c, d_, e, f, g)               \
  template <>                                                                                  \
  struct WarpgroupProduct<T, columns> {                                                        \
    template <bool kByColumns>                                                                 \
    __device__ static void of_tiles(float (&d)[columns / 8][4], TileOperand left,              \
                                    TileOperand right, int add) {                              \
      TRIREME_WARPGROUPS(asm volatile(                                                         \
          TRIREME_WGMMA(columns, type, names, "%" #a, b, c, "0, %" #d_)                        \
          : results(d)                                                                         \
          : "l"(left.descriptor), "l"(right.descriptor), "r"(add), "n"(kByColumns ? 1 : 0)));  \
    }                                                                                          \
    template <bool kByColumns>                                                                 \
    __device__ static void of_fragment(float (&d)[columns / 8][4],                             \
                                       const std::uint32_t (&left)[4], TileOperand right,      \
                                       int add) {                                              \
      TRIREME_WARPGROUPS(asm volatile(                                                         \
          TRIREME_WGMMA(columns, type, names, "{%" #a ",%" #b ",%" #c ",%" #d_ "}", e, f,      \
                        "%" #g)                                                                \
          : results(d)                                                                         \
          : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right.descriptor),     \
            "r"(add), "n"(kByColumns ? 1 : 0)));                                               \
    }                                                                                          \
  };
TRIREME_PRODUCTS(__nv_bfloat16, "bf16", 64, TRIREME_NAMES_32, TRIREME_32,
                 32, 33, 34, 35, 36, 37, 38)
TRIREME_PRODUCTS(__half, "f16", 64, TRIREME_NAMES_32, TRIREME_32,
                 32, 33, 34, 35, 36, 37, 38)
TRIREME_PRODUCTS(__nv_bfloat16, "bf16", 128, TRIREME_NAMES_64, TRIREME_64,
                 64, 65, 66, 67, 68, 69, 70)
TRIREME_PRODUCTS(__half, "f16", 128, TRIREME_NAMES_64, TRIREME_64,
                 64, 65, 66, 67, 68, 69, 70)
#undef TRIREME_PRODUCTS
#undef TRIREME_WGMMA
#undef TRIREME_NAMES_64
#undef TRIREME_NAMES_32
#undef TRIREME_64
#undef TRIREME_32
#undef TRIREME_16
#undef TRIREME_4
// clang-format on

#undef TRIREME_WARPGROUPS

}  // namespace trireme::cuda
