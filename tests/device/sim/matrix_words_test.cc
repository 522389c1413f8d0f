// Compares the matrix instructions of a warp with plain loops.
#include "src/device/sim/matrix_words.h"

#include <numeric>
#include <type_traits>

#include <cuda_fp16.h>

#include "tests/device/sim/device_array.h"

namespace trireme {
namespace {

using cuda::kernel_of;
using cuda::launch;

template <class T>
std::uint32_t pair_of(float low, float high) {
  if constexpr (std::is_same_v<T, __half>) {
    return __float2half_rn(low).bits | std::uint32_t{__float2half_rn(high).bits} << 16;
  } else {
    return __float2bfloat16_rn(low).bits | std::uint32_t{__float2bfloat16_rn(high).bits} << 16;
  }
}

// Computes d[16, 8] = d + a[16, 16] b[16, 8], all row-major.
template <class T>
__global__ void multiply_tile(const float* a, const float* b, float* d) {
  const unsigned row = threadIdx.x / 4;
  const unsigned column = threadIdx.x % 4 * 2;
  const auto a_pair = [&](unsigned i, unsigned k) {
    return pair_of<T>(a[i * 16 + k], a[i * 16 + k + 1]);
  };
  const auto b_pair = [&](unsigned k, unsigned j) {
    return pair_of<T>(b[k * 8 + j], b[(k + 1) * 8 + j]);
  };
  const std::uint32_t a_fragment[4] = {a_pair(row, column), a_pair(row + 8, column),
                                       a_pair(row, column + 8), a_pair(row + 8, column + 8)};
  const std::uint32_t b_fragment[2] = {b_pair(column, row), b_pair(column + 8, row)};
  float* low = d + row * 8 + column;
  float* high = low + 64;
  float sums[4] = {low[0], low[1], high[0], high[1]};
  cuda::mma<T>(sums, a_fragment, b_fragment);
  low[0] = sums[0];
  low[1] = sums[1];
  high[0] = sums[2];
  high[1] = sums[3];
}

template <class T>
void expect_products() {
  std::vector<float> a(256);
  std::vector<float> b(128);
  for (std::size_t at = 0; at < a.size(); ++at) {
    a[at] = static_cast<float>(at * 7 % 23) - 11;
  }
  for (std::size_t at = 0; at < b.size(); ++at) {
    b[at] = static_cast<float>(at * 5 % 19) - 9;
  }
  DeviceArray<float> device_a(a);
  DeviceArray<float> device_b(b);
  for (const std::uint64_t seed : {0, 1, 2, 3}) {
    const SeedScope scope(seed);
    DeviceArray<float> d(std::vector<float>(128, 1));
    launch(kernel_of<multiply_tile<T>>, 1, 32, 0, nullptr, device_a.data(), device_b.data(),
           d.data());
    const std::vector<float> seen = d.read();
    for (std::size_t i = 0; i < 16; ++i) {
      for (std::size_t j = 0; j < 8; ++j) {
        float right = 1;
        for (std::size_t k = 0; k < 16; ++k) {
          right += a[i * 16 + k] * b[k * 8 + j];
        }
        ASSERT_EQ(seen[i * 8 + j], right) << i << ", " << j;
      }
    }
  }
}

TEST(SimMatrixWords, MmaMultipliesTiles) {
  expect_products<__nv_bfloat16>();
  expect_products<__half>();
}

// tiles: four 8x8 tiles, one after another. out: four pairs per lane, of the plain load, then of
// the transposed one.
__global__ void load_matrices(const std::uint16_t* tiles, std::uint32_t* out) {
  auto* shared = cuda::dynamic_shared<std::uint16_t>();
  for (unsigned at = threadIdx.x; at < 256; at += 32) {
    shared[at] = tiles[at];
  }
  __syncwarp();
  std::uint32_t plain[4];
  std::uint32_t transposed[4];
  cuda::ldmatrix(plain, shared + threadIdx.x * 8);
  cuda::ldmatrix_transposed(transposed, shared + threadIdx.x * 8);
  for (unsigned tile = 0; tile < 4; ++tile) {
    out[threadIdx.x * 8 + tile] = plain[tile];
    out[threadIdx.x * 8 + 4 + tile] = transposed[tile];
  }
}

TEST(SimMatrixWords, LdmatrixLoadsTiles) {
  std::vector<std::uint16_t> tiles(256);
  std::iota(tiles.begin(), tiles.end(), std::uint16_t{0});
  DeviceArray<std::uint16_t> device_tiles(tiles);
  DeviceArray<std::uint32_t> out(256);
  launch(kernel_of<load_matrices>, 1, 32, 512, nullptr, device_tiles.data(), out.data());
  const std::vector<std::uint32_t> seen = out.read();
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t row = lane / 4;
    const std::uint32_t column = lane % 4 * 2;
    for (std::uint32_t tile = 0; tile < 4; ++tile) {
      const auto element = [=](std::uint32_t i, std::uint32_t j) { return tile * 64 + i * 8 + j; };
      EXPECT_EQ(seen[lane * 8 + tile], element(row, column) | element(row, column + 1) << 16);
      EXPECT_EQ(seen[lane * 8 + 4 + tile], element(column, row) | element(column + 1, row) << 16);
    }
  }
}

TEST(SimMatrixWords, HalfPrecisionRoundsToNearest) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const __half number{static_cast<unsigned short>(bits)};
    const float wide = __half2float(number);
    if (wide == wide) {  // not NaN
      ASSERT_EQ(__float2half_rn(wide).bits, number.bits) << bits;
    }
  }
  EXPECT_EQ(__half2float(__float2half_rn(1 + 0x1p-11F)), 1);            // a tie, to even
  EXPECT_EQ(__half2float(__float2half_rn(1 + 0x3p-11F)), 1 + 0x1p-9F);  // a tie, to even
  EXPECT_EQ(__float2half_rn(65519.0F).bits, 0x7BFF);
  EXPECT_EQ(__float2half_rn(65520.0F).bits, 0x7C00);
  EXPECT_EQ(__half2float(__float2half_rn(-0x1p-24F)), -0x1p-24F);
}

}  // namespace
}  // namespace trireme
