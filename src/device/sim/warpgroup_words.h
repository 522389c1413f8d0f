// The asynchronous products of a warpgroup (cuda_warpgroup.h). A warp performs its part of them, 16
// rows of the result, as late as the program allows: when it waits. Until then the result is NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim {

// An operand in shared memory: where its first row begins, and the bytes between two tiles of 64
// columns.
struct TileOperand {
  const unsigned char* first = nullptr;
  std::uint32_t apart = 0;
};

inline TileOperand operator+(TileOperand operand, std::uint32_t bytes) {
  return {operand.first + bytes, operand.apart};
}

struct WarpgroupProduct {
  float* d = nullptr;  // of the calling lane
  std::uint32_t fragment[4] = {};
  TileOperand left;  // instead of the fragment if not null
  TileOperand right;
  int columns = 0;
  bool by_columns = false;
  bool add = false;
  bool is_half = false;  // f16, or else bf16
};

// The products of one thread of a kernel: those that were issued, and the groups in which they were
// committed.
class WarpgroupProducts {
 public:
  bool empty() const { return products_.empty(); }
  void issue(const WarpgroupProduct& product);
  void commit() { group_ends_.push_back(products_.size()); }
  // Returns how many products have to be performed so that at most `pending` groups are under way.
  std::size_t due(std::size_t pending) const;
  // Returns the first product, whose result is then what it was when it was issued.
  WarpgroupProduct take_first();
  void forget_groups(std::size_t pending, std::size_t performed);

 private:
  struct Result {
    float* d;
    std::vector<float> before;
  };
  std::vector<WarpgroupProduct> products_;
  std::vector<std::size_t> group_ends_;
  std::vector<Result> results_;  // under way
};

// Called from kernels, by all lanes of a warp together.
void issue_product(const WarpgroupProduct& product);
void commit_products();
void wait_products(int pending);

}  // namespace sim
