// WordCache remembers the ids of short words, which most words of a text are. A table of fixed
// size with two places per word; a new word replaces an old one. For one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace trireme {

class WordCache {
 public:
  static constexpr std::size_t kMostBytes = 31;

  // A word with its length in the last byte, so that equal keys are equal words.
  struct Key {
    std::array<std::uint64_t, 4> words{};
  };
  static Key key_of(std::string_view word) {  // at most kMostBytes
    Key key;
    std::memcpy(key.words.data(), word.data(), word.size());
    key.words[3] |= static_cast<std::uint64_t>(word.size()) << 56;
    return key;
  }

  // Returns the ids of a word, or none if it is not here.
  std::span<const std::int32_t> find(const Key& key) const {
    const std::size_t at = place(key);
    for (const Entry& entry : {std::cref(entries_[at]), std::cref(entries_[at ^ 1])}) {
      if (entry.key.words == key.words) {
        return std::span(entry.ids).first(entry.count);
      }
    }
    return {};
  }
  void put(const Key& key, std::span<const std::int32_t> ids) {
    if (ids.empty() || ids.size() > kMostIds) {
      return;
    }
    const std::size_t at = place(key);
    entries_[at ^ 1] = entries_[at];
    Entry& entry = entries_[at];
    entry.key = key;
    entry.count = static_cast<std::uint32_t>(ids.size());
    std::memcpy(entry.ids.data(), ids.data(), ids.size_bytes());
  }

 private:
  static constexpr std::size_t kEntries = std::size_t{1} << 16;
  static constexpr std::size_t kMostIds = 7;
  struct alignas(64) Entry {
    Key key;  // length 0 = free
    std::array<std::int32_t, kMostIds> ids{};
    std::uint32_t count = 0;
  };
  static_assert(kEntries == 65536, "place() takes 16 bits");
  static std::size_t place(const Key& key) {
    std::uint64_t hash = key.words[0] * 0x9E3779B97F4A7C15ULL;
    hash ^= (key.words[1] ^ key.words[2] * 0xC2B2AE3D27D4EB4FULL) * 0x165667B19E3779F9ULL;
    hash = (hash ^ key.words[3]) * 0xD6E8FEB86659FD93ULL;
    return hash >> 48;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(kEntries);
};

}  // namespace trireme
