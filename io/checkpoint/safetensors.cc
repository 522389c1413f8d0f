#include "io/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the files are little-endian");

constexpr std::int64_t kMostHeaderBytes = 100'000'000;

SafetensorsEntry parse_entry(const std::string& name, const json& object) {
  SafetensorsEntry entry;
  entry.name = name;
  // Masks of other programs; no tensor of this one is of truth values.
  const std::string word = text_field(object, "dtype");
  entry.dtype = word == "BOOL" ? DType::u8 : parse_dtype(word);
  entry.shape = counts_field(object, "shape");
  const std::vector<std::int64_t> offsets = counts_field(object, "data_offsets");
  if (offsets.size() != 2) {
    throw DataError("'data_offsets' is not a pair");
  }
  entry.begin = offsets[0];
  entry.end = offsets[1];
  std::int64_t bytes = size_of(entry.dtype);
  for (const std::int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      throw DataError("its size overflows 64 bits");
    }
  }
  if (entry.end < entry.begin || entry.end - entry.begin != bytes) {
    throw DataError(fmt::format("its offsets [{}, {}] do not span its {} bytes", entry.begin,
                                entry.end, bytes));
  }
  return entry;
}

void check_dense(const std::vector<SafetensorsEntry>& entries, std::int64_t data_bytes) {
  std::int64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at) {
      throw DataError(
          fmt::format("tensor {} starts at byte {} instead of {}: there is a gap or an overlap",
                      entry.name, entry.begin, at));
    }
    at = entry.end;
  }
  if (at != data_bytes) {
    throw DataError(fmt::format("the tensors end at byte {}, but the file holds {} bytes of data",
                                at, data_bytes));
  }
}

}  // namespace

std::string encode_safetensors_header(const std::map<std::string, std::string>& metadata,
                                      const std::vector<SafetensorsEntry>& entries,
                                      std::int64_t alignment) {
  std::string text = "{\"__metadata__\":" + json(metadata).dump();
  for (const SafetensorsEntry& entry : entries) {
    const json value = {{"dtype", dtype_name(entry.dtype)},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
    text += fmt::format(",{}:{}", json(entry.name).dump(), value.dump());
  }
  text += "}";
  const auto bytes = static_cast<std::int64_t>(text.size());
  text.append(static_cast<std::size_t>(round_up(8 + bytes, alignment) - 8 - bytes), ' ');
  const std::uint64_t n = text.size();
  std::string head(8, '\0');
  std::memcpy(head.data(), &n, 8);
  return head + text;
}

std::int64_t safetensors_head_bytes(std::string_view first_8_bytes, std::int64_t file_bytes) {
  if (first_8_bytes.size() < 8 || file_bytes < 8) {
    throw DataError("the file is shorter than the 8 bytes of the header's length");
  }
  std::uint64_t n = 0;
  std::memcpy(&n, first_8_bytes.data(), 8);
  if (n > kMostHeaderBytes || static_cast<std::int64_t>(n) > file_bytes - 8) {
    throw DataError(
        fmt::format("a header of {} bytes does not fit into a file of {} bytes", n, file_bytes));
  }
  return 8 + static_cast<std::int64_t>(n);
}

SafetensorsHeader parse_safetensors_header(std::string_view head, std::int64_t file_bytes) {
  SafetensorsHeader header;
  header.data_offset = safetensors_head_bytes(head.substr(0, 8), file_bytes);
  if (static_cast<std::int64_t>(head.size()) < header.data_offset || head.substr(8, 1) != "{") {
    throw DataError("the header does not start with '{' or is truncated");
  }
  const json object = parse_json(head.substr(8, static_cast<std::size_t>(header.data_offset) - 8));
  for (const auto& [name, value] : object.items()) {
    try {
      if (name == "__metadata__") {
        for (const auto& [key, text] : object_field(object, "__metadata__").items()) {
          header.metadata[key] = text_field(value, key.c_str());
        }
      } else {
        header.entries.push_back(parse_entry(name, value));
      }
    } catch (const DataError& e) {
      throw DataError(fmt::format("tensor {}: {}", name, e.what()));
    }
  }
  std::sort(header.entries.begin(), header.entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  check_dense(header.entries, file_bytes - header.data_offset);
  return header;
}

}  // namespace trireme
