// Parses any bytes as the head of a GGUF file, which gives tensors that fill the file, or a
// DataError.
#include "src/interchange/gguf.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view file = text_of(data, bytes);
  refuses_only_with<DataError>([&] {
    const GgufHead head = parse_gguf_head(file, static_cast<std::int64_t>(file.size()));
    std::int64_t data_bytes = 0;
    for (const GgufTensor& tensor : head.tensors) {
      require(tensor.elements() > 0 && tensor.offset >= data_bytes);
      data_bytes = tensor.offset + tensor.bytes();
    }
    require(head.data_offset + data_bytes <= static_cast<std::int64_t>(file.size()));
  });
  return 0;
}
