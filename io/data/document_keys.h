// DocumentKeys computes keys of a document by which duplicates are found: one that only equal texts
// share, and some that texts share which are nearly equal (MinHash; Broder, "On the resemblance and
// containment of documents", 1997).
//
// A text is the set of its shingles: five consecutive words, without regard to case, spaces and
// ASCII punctuation. Characters of scripts without spaces are words. For each of 112 permutations
// of the shingles' hashes, the least one is kept; each band of eight of them is a key. Two texts
// with the Jaccard similarity s of their shingles share a key with the probability
// 1 - (1 - s^8)^14: 0.05 for s = 0.5, 0.77 for 0.75, 0.98 for 0.85.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>

#include "src/base/digest.h"

namespace trireme {

// Where a document begins: the number of the file, and a byte in what the file holds. Places are in
// the order in which documents are packed.
struct DocumentPlace {
  std::int64_t file = 0;
  std::int64_t start = 0;
  friend auto operator<=>(const DocumentPlace&, const DocumentPlace&) = default;
};

struct DocumentKey {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const DocumentKey&, const DocumentKey&) = default;
};

inline constexpr std::size_t kKeyBands = 14;
inline constexpr std::size_t kRowsPerBand = 8;
inline constexpr std::size_t kMinHashes = kKeyBands * kRowsPerBand;

// The least hashes of a document's shingles. For one thread.
class MinHash {
 public:
  // Parts of a text may be given one after another; a word that is cut counts as two.
  void add(std::string_view part);
  // Ends the document, and begins the next one.
  std::array<DocumentKey, kKeyBands> finish();

 private:
  static constexpr std::size_t kShingleWords = 5;

  void end_word(std::string_view word);
  void add_shingle(std::uint64_t hash);
  void clear();

  std::array<std::uint64_t, kShingleWords> words_{};  // hashes of the last words
  std::int64_t n_words_ = 0;
  std::array<std::uint32_t, kMinHashes> least_ = filled();

  static constexpr std::array<std::uint32_t, kMinHashes> filled() {
    std::array<std::uint32_t, kMinHashes> all{};
    all.fill(0xFFFFFFFF);
    return all;
  }
};

// The key of equal texts: the first half of the text's SHA-256. For one thread.
class EqualityKey {
 public:
  void add(std::string_view part) { digest_.update(part); }
  // Ends the document, and begins the next one.
  DocumentKey finish();

 private:
  Sha256 digest_;
};

}  // namespace trireme
