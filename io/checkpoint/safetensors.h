// The header of a safetensors file (github.com/huggingface/safetensors, README "Format").
//
//   | u64 N, little-endian | N bytes of JSON, padded with spaces | data, to the end of the file |
//   {"__metadata__": {"format": "pt", ...},
//    "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
//
// Offsets count from the start of the data; the tensors fill it without holes. Row-major,
// little-endian.
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
  std::vector<SafetensorsEntry> entries;  // in the order of the data
  std::int64_t data_offset = 0;           // bytes from the start of the file
};

// The file's first data_offset bytes, a multiple of `alignment`. The entries already lie densely.
std::string encode_safetensors_header(const std::map<std::string, std::string>& metadata,
                                      const std::vector<SafetensorsEntry>& entries,
                                      std::int64_t alignment);

// `head` is the start of a file of `file_bytes` bytes: at least its header, as far as the file has
// one. DataError for everything that the reference implementation's validate() refuses, and for
// element types this program has no use for.
SafetensorsHeader parse_safetensors_header(std::string_view head, std::int64_t file_bytes);
// Bytes of `head` that the above needs, from the file's first 8 bytes. DataError if impossible.
std::int64_t safetensors_head_bytes(std::string_view first_8_bytes, std::int64_t file_bytes);

}  // namespace trireme
