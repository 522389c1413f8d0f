// IoPattern makes the contents of files, and finds bytes that came back wrong or from another
// place. All transfers have the same random words, except that the first 16 bytes of each page
// (4 KiB) of a transfer hold their place in the file and the rank that wrote them, so that writing
// costs no time for making data. A value type.
#pragma once

#include <cstdint>
#include <vector>

namespace trireme {

class IoPattern {
 public:
  // transfer_bytes: a multiple of 8.
  IoPattern(std::int64_t transfer_bytes, std::uint64_t seed);

  // Fills data [transfer_bytes] with what every transfer has in common.
  void fill(char* data) const;
  // Stamps offset and writer into data, which fill() has filled.
  void stamp(char* data, std::int64_t offset, int writer) const;
  // Returns whether the first page of data has this stamp. Costs almost nothing.
  bool has_place(const char* data, std::int64_t offset, int writer) const;
  // Returns how many bytes of data differ from what `writer` wrote there.
  std::int64_t count_wrong(const char* data, std::int64_t offset, int writer) const;

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace trireme
