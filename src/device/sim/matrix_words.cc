#include "src/device/sim/matrix_words.h"

#include <cstddef>
#include <cstring>
#include <type_traits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "src/device/sim/kernel_thread.h"

namespace sim {
namespace {

struct Fragments {
  float* d;                // 4
  const std::uint32_t* a;  // 4 pairs
  const std::uint32_t* b;  // 2 pairs
};

template <class T>
float value_of(std::uint32_t bits) {
  const auto half = static_cast<unsigned short>(bits);
  if constexpr (std::is_same_v<T, __half>) {
    return __half2float(__ushort_as_half(half));
  } else {
    return __bfloat162float(__ushort_as_bfloat16(half));
  }
}
template <class T>
float low_of(std::uint32_t pair) {
  return value_of<T>(pair & 0xFFFFu);
}
template <class T>
float high_of(std::uint32_t pair) {
  return value_of<T>(pair >> 16);
}

const Fragments& fragments_of(const Records& records, int lane) {
  const void* record = records[static_cast<std::size_t>(lane)];
  if (record == nullptr) {
    die("a lane of the warp has ended or does not exist, but this instruction needs all of them");
  }
  return *static_cast<const Fragments*>(record);
}

// Lane 4 g + t holds in a[0..3] the pairs (g, 2 t), (g + 8, 2 t), (g, 2 t + 8), (g + 8, 2 t + 8) of
// A by row and column, in b[0..1] the pairs (2 t, g), (2 t + 8, g) of B, which lie along k, and in
// d[0..3] the elements (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1) of D.
template <class T>
void multiply(const Records& records) {
  float a[16][16];  // by row and k
  float b[16][8];   // by k and column
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const Fragments& own = fragments_of(records, lane);
    const int g = lane / 4;
    const int t = lane % 4 * 2;
    for (int part = 0; part < 4; ++part) {
      a[g + part % 2 * 8][t + part / 2 * 8] = low_of<T>(own.a[part]);
      a[g + part % 2 * 8][t + part / 2 * 8 + 1] = high_of<T>(own.a[part]);
    }
    for (int part = 0; part < 2; ++part) {
      b[t + part * 8][g] = low_of<T>(own.b[part]);
      b[t + part * 8 + 1][g] = high_of<T>(own.b[part]);
    }
  }
  float d[16][8] = {};
  for (int row = 0; row < 16; ++row) {
    for (int k = 0; k < 16; ++k) {
      for (int column = 0; column < 8; ++column) {
        d[row][column] += a[row][k] * b[k][column];
      }
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    float* own = fragments_of(records, lane).d;
    for (int at = 0; at < 4; ++at) {
      own[at] += d[lane / 4 + at / 2 * 8][lane % 4 * 2 + at % 2];
    }
  }
}

struct TileLoad {
  std::uint32_t* r;  // 4 pairs
  const std::uint16_t* row;
};

template <bool kTransposed>
void load(const Records& records) {
  std::uint16_t tiles[4][8][8];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const void* record = records[static_cast<std::size_t>(lane)];
    if (record == nullptr) {
      die("a lane of the warp has ended or does not exist, but ldmatrix needs all of them");
    }
    std::memcpy(tiles[lane / 8][lane % 8], static_cast<const TileLoad*>(record)->row, 16);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto* own = static_cast<const TileLoad*>(records[static_cast<std::size_t>(lane)]);
    const int g = lane / 4;
    const int t = lane % 4 * 2;
    for (int at = 0; at < 4; ++at) {
      const auto& tile = tiles[at];
      const std::uint32_t low = kTransposed ? tile[t][g] : tile[g][t];
      const std::uint32_t high = kTransposed ? tile[t + 1][g] : tile[g][t + 1];
      own->r[at] = low | high << 16;
    }
  }
}

}  // namespace

template <class T>
void multiply_fragments(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  Fragments own{d, a, b};
  whole_warp_collective(&own, &multiply<T>);
}
template void multiply_fragments<__nv_bfloat16>(float (&)[4], const std::uint32_t (&)[4],
                                                const std::uint32_t (&)[2]);
template void multiply_fragments<__half>(float (&)[4], const std::uint32_t (&)[4],
                                         const std::uint32_t (&)[2]);

void load_tiles(std::uint32_t (&r)[4], const void* row, bool transposed) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) {
    die("ldmatrix: a row is not aligned to 16 bytes");
  }
  TileLoad own{r, static_cast<const std::uint16_t*>(row)};
  whole_warp_collective(&own, transposed ? &load<true> : &load<false>);
}

}  // namespace sim
