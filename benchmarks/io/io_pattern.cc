#include "benchmarks/io/io_pattern.h"

#include <cstring>

#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr std::int64_t kPageBytes = 4096;

void put(char* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

std::uint64_t word_at(const char* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

}  // namespace

IoPattern::IoPattern(std::int64_t transfer_bytes, std::uint64_t seed)
    : words_(static_cast<std::size_t>(transfer_bytes / 8)) {
  for (std::size_t i = 0; i < words_.size(); ++i) {
    words_[i] = mix64(seed + i);
  }
}

void IoPattern::fill(char* data) const { std::memcpy(data, words_.data(), words_.size() * 8); }

void IoPattern::stamp(char* data, std::int64_t offset, int writer) const {
  const auto bytes = static_cast<std::int64_t>(words_.size() * 8);
  for (std::int64_t at = 0; at < bytes; at += kPageBytes) {
    put(data + at, static_cast<std::uint64_t>(offset + at));
    if (at + 16 <= bytes) {
      put(data + at + 8, static_cast<std::uint64_t>(writer));
    }
  }
}

bool IoPattern::has_place(const char* data, std::int64_t offset, int writer) const {
  return word_at(data) == static_cast<std::uint64_t>(offset) &&
         (words_.size() < 2 || word_at(data + 8) == static_cast<std::uint64_t>(writer));
}

std::int64_t IoPattern::count_wrong(const char* data, std::int64_t offset, int writer) const {
  std::vector<char> expected(words_.size() * 8);
  fill(expected.data());
  stamp(expected.data(), offset, writer);
  if (std::memcmp(expected.data(), data, expected.size()) == 0) {
    return 0;
  }
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    wrong += expected[i] == data[i] ? 0 : 1;
  }
  return wrong;
}

}  // namespace trireme
