// Parses any bytes as config.json of Hugging Face, which gives a model that can be built and
// written again, or a DataError.
#include "src/interchange/hf_config.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  refuses_only_with<DataError>([&] {
    const HfConfig config = parse_hf_config(text_of(data, bytes));
    const HfConfig again = parse_hf_config(hf_config_text(config, DType::f32));
    require(again.model == config.model);
  });
  return 0;
}
