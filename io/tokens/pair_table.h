// PairTable finds the merge of two neighbouring tokens: a hash table with open addressing.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace trireme {

struct Merge {
  std::uint32_t rank;  // smaller is merged first
  std::int32_t id;     // of the merged token
};

class PairTable {
 public:
  explicit PairTable(std::size_t pairs) : slots_(std::bit_ceil(pairs * 2 + 2)) {}

  // A later merge of the same pair replaces the earlier one.
  void put(std::int32_t a, std::int32_t b, Merge merge) {
    slots_[place(key_of(a, b))] = {key_of(a, b), merge};
  }
  // Returns null if the pair is not merged.
  const Merge* find(std::int32_t a, std::int32_t b) const {
    const Slot& slot = slots_[place(key_of(a, b))];
    return slot.key == kFree ? nullptr : &slot.merge;
  }

 private:
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  struct Slot {
    std::uint64_t key = kFree;
    Merge merge{};
  };
  static std::uint64_t key_of(std::int32_t a, std::int32_t b) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(a)) << 32 |
           static_cast<std::uint32_t>(b);
  }
  std::size_t place(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (key * 0x9E3779B97F4A7C15ULL >> 20) & mask;
    while (slots_[at].key != kFree && slots_[at].key != key) {
      at = (at + 1) & mask;
    }
    return at;
  }

  std::vector<Slot> slots_;
};

}  // namespace trireme
