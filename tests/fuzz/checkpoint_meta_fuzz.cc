// Parses any bytes as the model and the counters in a checkpoint's manifest, which gives values or
// a DataError. A model that parses must have a countable number of parameters.
#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"
#include "src/nn/model_size.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/model_fingerprint.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  nlohmann::json object;
  try {
    object = trireme::parse_json(trireme::text_of(data, bytes));
  } catch (const trireme::DataError&) {
    return 0;
  }
  trireme::refuses_only_with<trireme::DataError>([&] {
    const trireme::ModelConfig model = trireme::model_from_fingerprint(object);
    trireme::require(trireme::parameter_count(model) > 0);
  });
  trireme::refuses_only_with<trireme::DataError>([&] {
    const trireme::TrainingCounters counters = trireme::counters_from_json(object);
    trireme::require(counters.batches() >= counters.step);
    (void)trireme::counters_from_json(trireme::to_json(counters));
  });
  return 0;
}
