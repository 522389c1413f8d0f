// Parses any bytes as the header of a safetensors file, which gives tensors that cover the data
// without holes, or a DataError.
#include <string_view>

#include "io/checkpoint/safetensors.h"
#include "src/base/check.h"
#include "src/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view file(reinterpret_cast<const char*>(data), bytes);
  try {
    const auto header =
        trireme::parse_safetensors_header(file, static_cast<std::int64_t>(file.size()));
    std::int64_t at = header.data_offset;
    for (const auto& entry : header.entries) {
      at += entry.end - entry.begin;
    }
    trireme::check(at == static_cast<std::int64_t>(file.size()), "the tensors fill the file");
  } catch (const trireme::DataError&) {
    return 0;
  }
  return 0;
}
