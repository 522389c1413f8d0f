// Products of a warpgroup, for the simulated device. See src/device/cuda/language/cuda_warpgroup.h,
// which has the same names for nvcc and says what they mean.
#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "src/device/sim/kernel_thread.h"
#include "src/device/sim/warpgroup_words.h"

namespace trireme::cuda {

inline constexpr bool kHasWarpgroups = true;
inline constexpr int kWarpgroupCapability = 9;

inline constexpr int kSwizzledRow = 128;

inline int swizzled_chunk(int row, int chunk) {
  return row * kSwizzledRow + (chunk ^ row % 8) * 16;
}

// The simulated device aligns the memory if its size is a multiple of 1,024 bytes.
inline unsigned char* dynamic_tiles() {
  auto* const tiles = static_cast<unsigned char*>(sim::dynamic_shared_memory());
  if (reinterpret_cast<std::uintptr_t>(tiles) % 1024 != 0) {
    sim::die("the bytes of a block's tiles are not a multiple of 1,024");
  }
  return tiles;
}

using sim::TileOperand;

inline TileOperand tile_operand(const void* tile, std::uint32_t apart = 1024) {
  return {static_cast<const unsigned char*>(tile), apart};
}

inline void show_to_products() {}
template <class... Arrays>
void start_products(Arrays&...) {}
inline void commit_products() { sim::commit_products(); }
template <int kPending, class... Arrays>
void wait_products(Arrays&...) {
  sim::wait_products(kPending);
}

template <class T, int kColumns>
struct WarpgroupProduct {
  template <bool kByColumns>
  static void of_tiles(float (&d)[kColumns / 8][4], TileOperand left, TileOperand right, int add) {
    sim::issue_product({.d = d[0],
                        .left = left,
                        .right = right,
                        .columns = kColumns,
                        .by_columns = kByColumns,
                        .add = add != 0,
                        .is_half = std::is_same_v<T, __half>});
  }
  template <bool kByColumns>
  static void of_fragment(float (&d)[kColumns / 8][4], const std::uint32_t (&left)[4],
                          TileOperand right, int add) {
    sim::issue_product({.d = d[0],
                        .fragment = {left[0], left[1], left[2], left[3]},
                        .left = {},
                        .right = right,
                        .columns = kColumns,
                        .by_columns = kByColumns,
                        .add = add != 0,
                        .is_half = std::is_same_v<T, __half>});
  }
};

}  // namespace trireme::cuda
