// Parses any bytes as the head of a GGUF file, which gives tensors that fill the file, or a
// DataError. Their elements, whatever they are, can be read, and written again if they are in the
// range of their type.
#include <cmath>

#include "src/interchange/gguf.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace trireme;

void read_elements(const GgufTensor& tensor, const char* data) {
  std::vector<float> elements(static_cast<std::size_t>(tensor.elements()));
  dequantize(tensor.type, reinterpret_cast<const std::byte*>(data), tensor.elements(),
             elements.data());
  bool is_in_range = true;
  for (const float x : elements) {
    is_in_range = is_in_range && std::abs(x) < 65504;
  }
  if (is_in_range) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes()));
    quantize(tensor.type, elements.data(), tensor.elements(), bytes.data());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view file = text_of(data, bytes);
  refuses_only_with<DataError>([&] {
    const GgufHead head = parse_gguf_head(file, static_cast<std::int64_t>(file.size()));
    std::int64_t data_bytes = 0;
    for (const GgufTensor& tensor : head.tensors) {
      require(tensor.elements() > 0 && tensor.offset >= data_bytes);
      data_bytes = tensor.offset + tensor.bytes();
      require(head.data_offset + data_bytes <= static_cast<std::int64_t>(file.size()));
      read_elements(tensor, file.data() + head.data_offset + tensor.offset);
    }
  });
  return 0;
}
