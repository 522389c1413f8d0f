// Parses any bytes as an ONNX model, which gives a DataError, or a model that is written and read
// again without a change.
#include "src/interchange/onnx/onnx_model.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  refuses_only_with<DataError>([&] {
    const std::string text = encode_onnx(parse_onnx(text_of(data, bytes)));
    require(encode_onnx(parse_onnx(text)) == text);
  });
  return 0;
}
