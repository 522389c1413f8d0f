// Compares the products of a warpgroup with plain loops, and checks that they end no sooner than
// they are waited for.
#include <cmath>
#include <type_traits>

#include <cuda_warpgroup.h>

#include "tests/device/sim/device_array.h"

namespace trireme {
namespace {

using cuda::kernel_of;
using cuda::kSwizzledRow;
using cuda::launch;

constexpr int kRows = 64;   // of the left operand and the result
constexpr int kDepth = 64;  // of the sums

template <class T>
T rounded(float x) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(x);
  } else {
    return __float2bfloat16_rn(x);
  }
}

template <class T>
std::uint32_t pair_of(const float* x) {
  return rounded<T>(x[0]).bits | std::uint32_t{rounded<T>(x[1]).bits} << 16;
}

// Stores a row-major matrix of `columns` columns as swizzled tiles of 64 columns.
template <class T>
void swizzle(unsigned char* tile, const float* from, int rows, int columns) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += 128) {
    const int row = i / columns;
    const int column = i % columns;
    unsigned char* const at = tile + column / 64 * rows * kSwizzledRow +
                              cuda::swizzled_chunk(row, column % 64 / 8) + column % 8 * 2;
    *reinterpret_cast<T*>(at) = rounded<T>(from[i]);
  }
}

struct ProductArguments {
  const float* a;  // [64, 64]
  const float* b;  // [kColumns, 64], or [64, kColumns] if read by columns
  float* d;        // [64, kColumns]
  float* early;    // what one element was before the wait
  bool spoil;      // the operands after their use
};

template <class T, int kColumns, bool kFragments, bool kByColumns>
__global__ void multiply(ProductArguments p) {
  auto* const a = cuda::dynamic_shared<unsigned char>();
  unsigned char* const b = a + kRows * kDepth * 2;
  swizzle<T>(a, p.a, kRows, kDepth);
  swizzle<T>(b, p.b, kByColumns ? kDepth : kColumns, kByColumns ? kColumns : kDepth);
  cuda::show_to_products();
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x) / 4 % 8 + static_cast<int>(threadIdx.x) / 32 * 16;
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
  float d[kColumns / 8][4];
  for (auto& four : d) {
    std::fill_n(four, 4, 1.0F);
  }
  std::uint32_t fragments[kDepth / 16][4];
  for (int k = 0; k < kDepth / 16; ++k) {
    for (int part = 0; part < 4; ++part) {
      fragments[k][part] =
          pair_of<T>(p.a + (row + part % 2 * 8) * kDepth + k * 16 + column + part / 2 * 8);
    }
  }
  cuda::start_products(d, fragments);
  for (int k = 0; k < kDepth / 16; ++k) {
    const auto along_rows = static_cast<std::uint32_t>(k * 32);
    const cuda::TileOperand right =
        cuda::tile_operand(b, kDepth * kSwizzledRow) +
        (kByColumns ? static_cast<std::uint32_t>(k * 16 * kSwizzledRow) : along_rows);
    using Words = cuda::WarpgroupProduct<T, kColumns>;
    if constexpr (kFragments) {
      Words::template of_fragment<kByColumns>(d, fragments[k], right, 1);
    } else {
      Words::template of_tiles<kByColumns>(d, cuda::tile_operand(a) + along_rows, right, 1);
    }
  }
  cuda::commit_products();
  if (threadIdx.x == 0) {
    *p.early = d[0][0];
  }
  if (p.spoil) {
    swizzle<T>(b, p.b, 1, 64);  // the same numbers; then others
    reinterpret_cast<T*>(b)[0] = rounded<T>(1000);
  }
  cuda::wait_products<0>(d, fragments);
  for (int n = 0; n < kColumns / 8; ++n) {
    for (int at = 0; at < 4; ++at) {
      p.d[(row + at / 2 * 8) * kColumns + n * 8 + column + at % 2] = d[n][at];
    }
  }
}

std::vector<float> numbers(int count, int step) {
  std::vector<float> all(static_cast<std::size_t>(count));
  for (int at = 0; at < count; ++at) {
    all[static_cast<std::size_t>(at)] = static_cast<float>(at * step % 23) - 11;
  }
  return all;
}

template <class T, int kColumns, bool kFragments, bool kByColumns>
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& b, bool spoil) {
  DeviceArray<float> device_a(a);
  DeviceArray<float> device_b(b);
  DeviceArray<float> d(kRows * kColumns);
  DeviceArray<float> early(1);
  launch(kernel_of<multiply<T, kColumns, kFragments, kByColumns>>, 1, 128,
         (kRows + kColumns) * kDepth * 2, nullptr,
         ProductArguments{device_a.data(), device_b.data(), d.data(), early.data(), spoil});
  EXPECT_TRUE(std::isnan(early.read()[0])) << "a result can be read before the wait";
  return d.read();
}

template <class T, int kColumns, bool kFragments, bool kByColumns>
void expect_warpgroup_products() {
  const std::vector<float> a = numbers(kRows * kDepth, 7);
  const std::vector<float> b = numbers(kColumns * kDepth, 5);
  for (const std::uint64_t seed : {0, 1, 2}) {
    const SeedScope scope(seed);
    const auto seen = product<T, kColumns, kFragments, kByColumns>(a, b, false);
    for (std::size_t i = 0; i < kRows; ++i) {
      for (std::size_t j = 0; j < kColumns; ++j) {
        float right = 1;
        for (std::size_t k = 0; k < kDepth; ++k) {
          right += a[i * kDepth + k] * (kByColumns ? b[k * kColumns + j] : b[j * kDepth + k]);
        }
        ASSERT_EQ(seen[i * kColumns + j], right) << i << ", " << j;
      }
    }
  }
}

template <class T>
void expect_all_products() {
  expect_warpgroup_products<T, 64, false, false>();
  expect_warpgroup_products<T, 64, true, true>();
  expect_warpgroup_products<T, 128, false, false>();
  expect_warpgroup_products<T, 128, true, true>();
}

TEST(SimWarpgroupWords, MultiplyTiles) {
  expect_all_products<__nv_bfloat16>();
  expect_all_products<__half>();
}

TEST(SimWarpgroupWords, ReadTheirOperandsUntilTheyAreWaitedFor) {
  const std::vector<float> a = numbers(kRows * kDepth, 7);
  const std::vector<float> b = numbers(64 * kDepth, 5);
  const auto right = product<__nv_bfloat16, 64, true, true>(a, b, false);
  const auto spoilt = product<__nv_bfloat16, 64, true, true>(a, b, true);
  EXPECT_NE(spoilt[0], right[0]);
}

__global__ void end_early() {
  auto* const tile = cuda::dynamic_shared<unsigned char>();
  float d[8][4] = {};
  cuda::WarpgroupProduct<__nv_bfloat16, 64>::of_tiles<false>(d, cuda::tile_operand(tile),
                                                             cuda::tile_operand(tile), 0);
  cuda::commit_products();
}

TEST(SimWarpgroupWordsDeathTest, ProductsThatNobodyWaitsForAreReported) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        launch(kernel_of<end_early>, 1, 128, 8192, nullptr);
        cudaDeviceSynchronize();
      },
      "ends with products of its warpgroup under way");
}

}  // namespace
}  // namespace trireme
