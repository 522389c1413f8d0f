// Reads and writes the head of a GGUF file, version 3 (ggml, docs/gguf.md), the format of
// llama.cpp. Pure functions.
//
//   "GGUF" | u32 version = 3 | u64 tensors | u64 values
//   values:   key | u32 type | value                          text = u64 bytes, bytes
//   tensors:  name | u32 n | u64 extents[n], innermost first | u32 type | u64 offset
//   zeros up to a multiple of the alignment, then the data; each tensor is padded the same way
//
// Offsets count from the start of the data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "src/interchange/quantized.h"

namespace trireme {

// A value of the types that models have. Integers are u32, reals f32.
using GgufValue = std::variant<std::uint32_t, float, bool, std::string, std::vector<std::string>,
                               std::vector<std::int32_t>, std::vector<float>>;

struct GgufTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // outermost first, as elsewhere
  GgufType type = GgufType::f32;
  std::int64_t offset = 0;  // bytes from the start of the data
  std::int64_t elements() const;
  std::int64_t bytes() const { return quantized_bytes(type, elements()); }
};

struct GgufHead {
  std::map<std::string, GgufValue> values;
  std::vector<GgufTensor> tensors;  // in the order of their data
  std::int64_t data_offset = 0;     // bytes from the start of the file
};

inline constexpr std::int64_t kGgufAlignment = 32;

// Sets the tensors' offsets, and returns everything before the data. Precondition: names have at
// most 63 bytes, and rows are whole blocks.
std::string encode_gguf_head(GgufHead& head);

// Parses the head of a file of `file_bytes` bytes, of which `text` is the beginning. Throws
// DataError if it is damaged, ends within `text`, or has tensors or types that a file of this
// program does not have.
GgufHead parse_gguf_head(std::string_view text, std::int64_t file_bytes);

}  // namespace trireme
