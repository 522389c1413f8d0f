#include "src/device/sim/warpgroup_words.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "src/device/sim/kernel_thread.h"
#include "src/device/sim/scheduler.h"

namespace sim {
namespace {

constexpr int kRowBytes = 128;
constexpr int kDepth = 16;  // of the sums of one product
constexpr int kWarpRows = 16;
constexpr int kMostColumns = 128;

float value_of_half(std::uint16_t bits, bool is_half) {
  return is_half ? __half2float(__ushort_as_half(bits))
                 : __bfloat162float(__ushort_as_bfloat16(bits));
}

// Loads the eight elements that lie `bytes` after the operand's beginning: the place of a chunk of
// 16 bytes within its row of 128 bytes is exchanged by the number of the row.
void load_chunk(float* to, const unsigned char* first, std::ptrdiff_t bytes, bool is_half) {
  const auto address = reinterpret_cast<std::uintptr_t>(first) + static_cast<std::uintptr_t>(bytes);
  const std::uintptr_t swizzled = address ^ (address >> 7 & 7) << 4;
  std::uint16_t chunk[8];
  std::memcpy(chunk, reinterpret_cast<const void*>(swizzled), sizeof chunk);
  for (int at = 0; at < 8; ++at) {
    to[at] = value_of_half(chunk[at], is_half);
  }
}

struct Operands {
  float left[kWarpRows][kDepth];
  float right[kDepth][kMostColumns];
};

void load_right(Operands& operands, const WarpgroupProduct& product) {
  const TileOperand& right = product.right;
  if (product.by_columns) {
    for (int k = 0; k < kDepth; ++k) {
      for (int n = 0; n < product.columns; n += 8) {
        load_chunk(operands.right[k] + n, right.first,
                   n / 64 * static_cast<std::ptrdiff_t>(right.apart) + k * kRowBytes + n % 64 * 2,
                   product.is_half);
      }
    }
    return;
  }
  for (int n = 0; n < product.columns; ++n) {
    float row[kDepth];
    load_chunk(row, right.first, n * kRowBytes, product.is_half);
    load_chunk(row + 8, right.first, n * kRowBytes + 16, product.is_half);
    for (int k = 0; k < kDepth; ++k) {
      operands.right[k][n] = row[k];
    }
  }
}

void load_left(Operands& operands, const Records& records) {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto& own =
        *static_cast<const WarpgroupProduct*>(records[static_cast<std::size_t>(lane)]);
    const int g = lane / 4;
    const int t = lane % 4 * 2;
    for (int part = 0; part < 4; ++part) {
      float* const to = operands.left[g + part % 2 * 8] + t + part / 2 * 8;
      to[0] = value_of_half(static_cast<std::uint16_t>(own.fragment[part]), own.is_half);
      to[1] = value_of_half(static_cast<std::uint16_t>(own.fragment[part] >> 16), own.is_half);
    }
  }
}

// Performs a product for the rows of a warp; the records are those of its lanes.
void multiply_rows(const Records& records) {
  for (const void* record : records) {
    if (record == nullptr) {
      die("a lane of the warp has ended or does not exist, but wgmma needs all of them");
    }
  }
  const auto& product = *static_cast<const WarpgroupProduct*>(records[0]);
  Operands operands;
  load_right(operands, product);
  if (product.left.first == nullptr) {
    load_left(operands, records);
  } else {
    const int first_row = static_cast<int>(threadIdx.x / kWarpSize % 4) * kWarpRows;
    for (int row = 0; row < kWarpRows; ++row) {
      for (int half = 0; half < 2; ++half) {
        load_chunk(operands.left[row] + 8 * half, product.left.first,
                   (first_row + row) * kRowBytes + 16 * half, product.is_half);
      }
    }
  }
  float sums[kWarpRows][kMostColumns] = {};
  for (int row = 0; row < kWarpRows; ++row) {
    for (int k = 0; k < kDepth; ++k) {
      for (int n = 0; n < product.columns; ++n) {
        sums[row][n] += operands.left[row][k] * operands.right[k][n];
      }
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto& own =
        *static_cast<const WarpgroupProduct*>(records[static_cast<std::size_t>(lane)]);
    for (int n = 0; n < product.columns / 8; ++n) {
      for (int at = 0; at < 4; ++at) {
        float& d = own.d[n * 4 + at];
        d = (own.add ? d : 0.0F) + sums[lane / 4 + at / 2 * 8][n * 8 + lane % 4 * 2 + at % 2];
      }
    }
  }
}

}  // namespace

void WarpgroupProducts::issue(const WarpgroupProduct& product) {
  const auto same = [&](const Result& result) { return result.d == product.d; };
  if (std::none_of(results_.begin(), results_.end(), same)) {
    const auto count = static_cast<std::size_t>(product.columns) / 2;
    results_.push_back({product.d, {product.d, product.d + count}});
    std::fill_n(product.d, count, std::numeric_limits<float>::quiet_NaN());
  }
  products_.push_back(product);
}

std::size_t WarpgroupProducts::due(std::size_t pending) const {
  return group_ends_.size() <= pending ? 0 : group_ends_[group_ends_.size() - pending - 1];
}

WarpgroupProduct WarpgroupProducts::take_first() {
  const WarpgroupProduct product = products_.front();
  products_.erase(products_.begin());
  const auto result = std::find_if(results_.begin(), results_.end(),
                                   [&](const Result& one) { return one.d == product.d; });
  if (result != results_.end()) {
    std::copy(result->before.begin(), result->before.end(), product.d);
    results_.erase(result);
  }
  return product;
}

void WarpgroupProducts::forget_groups(std::size_t pending, std::size_t performed) {
  if (group_ends_.size() > pending) {
    group_ends_.erase(group_ends_.begin(),
                      group_ends_.end() - static_cast<std::ptrdiff_t>(pending));
    for (std::size_t& end : group_ends_) {
      end -= performed;
    }
  }
}

void issue_product(const WarpgroupProduct& product) {
  const auto aligned = [](const TileOperand& operand) {
    return reinterpret_cast<std::uintptr_t>(operand.first) % 16 == 0 && operand.apart % 16 == 0;
  };
  if (!aligned(product.left) || !aligned(product.right)) {
    die("wgmma: an operand is not aligned to 16 bytes");
  }
  scheduler().current().products.issue(product);
}

void commit_products() { scheduler().current().products.commit(); }

void wait_products(int pending) {
  WarpgroupProducts& products = scheduler().current().products;
  const auto most = static_cast<std::size_t>(pending);
  const std::size_t due = products.due(most);
  for (std::size_t count = 0; count < due; ++count) {
    WarpgroupProduct product = products.take_first();
    whole_warp_collective(&product, &multiply_rows);
  }
  products.forget_groups(most, due);
}

}  // namespace sim
