// Compiled with -O3 (see CMakeLists.txt), because most of the time goes into the loop over the
// permutations.
#include "io/data/document_keys.h"

#include <algorithm>
#include <string>

#include "src/base/philox.h"

namespace trireme {
namespace {

// x -> factor x + addend modulo 2^32 is a permutation, since the factors are odd.
struct Permutations {
  std::array<std::uint32_t, kMinHashes> factor{};
  std::array<std::uint32_t, kMinHashes> addend{};
};

constexpr Permutations make_permutations() {
  Permutations all;
  for (std::size_t i = 0; i < kMinHashes; ++i) {
    const std::uint64_t random = mix64(i + 1);
    all.factor[i] = static_cast<std::uint32_t>(random) | 1U;
    all.addend[i] = static_cast<std::uint32_t>(random >> 32);
  }
  return all;
}

constexpr Permutations kPermutations = make_permutations();

bool is_word_byte(unsigned char c) {
  return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Returns the length of the character of UTF-8 that `text` begins with, if its script has no spaces
// between words, or 0: Thai, Lao, Myanmar, Khmer (U+0E00 to U+0EFF, U+1000 to U+109F, U+1780 to
// U+17FF), kana, and Han characters (U+2E80 to U+9FFF, U+F900 to U+FAFF, U+20000 to U+3FFFF).
std::size_t unspaced_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0xE0 || text.size() < 3) {
    return 0;
  }
  const unsigned code = (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
  if (byte(0) < 0xF0) {
    const bool is_unspaced =
        (code >= 0x0E00 && code <= 0x0EFF) || (code >= 0x1000 && code <= 0x109F) ||
        (code >= 0x1780 && code <= 0x17FF) || (code >= 0x2E80 && code <= 0x9FFF) ||
        (code >= 0xF900 && code <= 0xFAFF);
    return is_unspaced ? 3 : 0;
  }
  const bool is_unspaced = byte(0) == 0xF0 && byte(1) >= 0xA0 && byte(1) <= 0xBF;
  return is_unspaced && text.size() >= 4 ? 4 : 0;
}

}  // namespace

void MinHash::add_shingle(std::uint64_t hash) {
  const auto x = static_cast<std::uint32_t>(hash ^ hash >> 32);
  for (std::size_t i = 0; i < kMinHashes; ++i) {
    const std::uint32_t y = kPermutations.factor[i] * x + kPermutations.addend[i];
    least_[i] = std::min(least_[i], y);
  }
}

void MinHash::end_word(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  std::rotate(words_.begin(), words_.begin() + 1, words_.end());
  words_.back() = xxh3(lower.data(), std::ssize(lower));
  ++n_words_;
  if (n_words_ >= static_cast<std::int64_t>(kShingleWords)) {
    add_shingle(xxh3(words_.data(), sizeof words_));
  }
}

void MinHash::add(std::string_view part) {
  std::size_t begin = 0;
  const auto end_at = [&](std::size_t at) {
    if (at > begin) {
      end_word(part.substr(begin, at - begin));
    }
  };
  for (std::size_t at = 0; at < part.size();) {
    const auto byte = static_cast<unsigned char>(part[at]);
    if (!is_word_byte(byte)) {
      end_at(at);
      begin = ++at;
    } else if (const std::size_t bytes = unspaced_character(part.substr(at)); bytes > 0) {
      end_at(at);
      end_word(part.substr(at, bytes));
      begin = at += bytes;
    } else {
      ++at;
    }
  }
  end_at(part.size());
}

std::array<DocumentKey, kKeyBands> MinHash::finish() {
  if (n_words_ < static_cast<std::int64_t>(kShingleWords)) {
    add_shingle(xxh3(words_.data(), sizeof words_));  // all words of a short text
  }
  std::array<DocumentKey, kKeyBands> keys;
  for (std::size_t band = 0; band < kKeyBands; ++band) {
    keys[band] = {band, xxh3(&least_[band * kRowsPerBand], kRowsPerBand * sizeof least_[0])};
  }
  clear();
  return keys;
}

void MinHash::clear() {
  words_ = {};
  n_words_ = 0;
  least_ = filled();
}

DocumentKey EqualityKey::finish() {
  const std::string digits = digest_.finish_hex();
  digest_ = Sha256();
  const std::string_view half = digits;
  return {parse_hex64(half.substr(0, 16)), parse_hex64(half.substr(16, 16))};
}

}  // namespace trireme
