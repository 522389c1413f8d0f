// Reads and writes the header of a safetensors file (github.com/huggingface/safetensors, README
// "Format"). Pure functions.
//
//   | u64 N, little-endian | N bytes of JSON, padded with spaces | data, to the end of the file |
//   {"__metadata__": {"format": "pt", ...},
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
//
// Offsets count from the start of the data, which the tensors fill without holes. Data is row-major
// and little-endian.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/device/dtype.h"

namespace trireme {

struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // bytes from the start of the data
  std::int64_t end = 0;
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<SafetensorsEntry> entries;  // sorted by position in the data
  std::int64_t data_offset = 0;           // bytes from the start of the file
};

// Returns the file's first data_offset bytes, whose number is a multiple of `alignment`.
// Precondition: the entries lie densely.
std::string encode_safetensors_header(const std::map<std::string, std::string>& metadata,
                                      const std::vector<SafetensorsEntry>& entries,
                                      std::int64_t alignment);

// `head` is the start of a file of `file_bytes` bytes and contains at least its header. Throws
// DataError for everything that the reference implementation's validate() refuses, and for element
// types that Trireme does not support. BOOL, which masks of other programs have, becomes u8.
SafetensorsHeader parse_safetensors_header(std::string_view head, std::int64_t file_bytes);
// Returns how many bytes of the file parse_safetensors_header() needs, from the file's first 8
// bytes. Throws DataError if the length is impossible.
std::int64_t safetensors_head_bytes(std::string_view first_8_bytes, std::int64_t file_bytes);

}  // namespace trireme
