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
    bool equals(const Key& other) const {  // without the call that == of an array becomes
      return ((words[0] ^ other.words[0]) | (words[1] ^ other.words[1]) |
              (words[2] ^ other.words[2]) | (words[3] ^ other.words[3])) == 0;
    }
    std::string_view text() const {
      return {reinterpret_cast<const char*>(words.data()), words[3] >> 56};
    }
  };
  // word: 1 to kMostBytes bytes. Loads parts of fixed sizes that may overlap, since a copy of any
  // size would be a call, and the loads after it would wait for its bytes.
  static Key key_of(std::string_view word) {
    Key key;
    const std::size_t size = word.size();
    const char* const at = word.data();
    const std::size_t whole = size / 8;
    const std::size_t rest = size % 8;
    for (std::size_t i = 0; i < whole; ++i) {
      key.words[i] = load<std::uint64_t>(at + 8 * i);
    }
    if (rest != 0) {
      key.words[whole] =
          size > 8 ? load<std::uint64_t>(at + size - 8) >> 8 * (8 - rest) : few_bytes(at, rest);
    }
    key.words[3] |= static_cast<std::uint64_t>(size) << 56;
    return key;
  }

  // The same, if kMostBytes + 1 bytes can be read from the word's first on. Has no branches, which
  // could not be predicted, since words have any size.
  static Key key_in_text(std::string_view word) {
    static constexpr auto kMasks = [] {
      std::array<Key, kMostBytes + 1> masks{};
      for (std::size_t byte = 0; byte < 8 * 4; ++byte) {
        for (std::size_t size = byte + 1; size <= kMostBytes; ++size) {
          masks[size].words[byte / 8] |= std::uint64_t{0xFF} << 8 * (byte % 8);
        }
      }
      return masks;
    }();
    const Key& mask = kMasks[word.size()];
    Key key;
    for (std::size_t i = 0; i < key.words.size(); ++i) {
      key.words[i] = load<std::uint64_t>(word.data() + 8 * i) & mask.words[i];
    }
    key.words[3] |= static_cast<std::uint64_t>(word.size()) << 56;
    return key;
  }

  // Begins to load what find() will look at.
  void prefetch(const Key& key) const {
    const std::size_t at = place(key);
    __builtin_prefetch(&entries_[at]);
    __builtin_prefetch(&entries_[at ^ 1]);
  }

  // Returns the ids of a word, or none if it is not here.
  std::span<const std::int32_t> find(const Key& key) const {
    const std::size_t at = place(key);
    for (const Entry& entry : {std::cref(entries_[at]), std::cref(entries_[at ^ 1])}) {
      if (entry.key.equals(key)) {
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
  template <class T>
  static std::uint64_t load(const char* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  static std::uint64_t few_bytes(const char* from, std::size_t size) {  // 1 to 7
    if (size >= 4) {
      return load<std::uint32_t>(from) | load<std::uint32_t>(from + size - 4) << 8 * (size - 4);
    }
    return load<std::uint8_t>(from) | load<std::uint8_t>(from + size / 2) << 8 * (size / 2) |
           load<std::uint8_t>(from + size - 1) << 8 * (size - 1);
  }
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
