// What `trireme eval --quantize` reports: loss, memory and speed with packed weights, beside those
// with the same weights as they are.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "src/train/load_model.h"

namespace trireme {

// What was measured with one form of the weights.
struct WeightsFigures {
  std::string type;         // "int8", "int4", or the precision: "bf16", "fp32"
  double loss = 0;          // nats per token
  std::int64_t bytes = 0;   // of all weights in memory
  double tokens_per_s = 0;  // decoded one after another
};

struct QuantizeReport {
  std::string kernels;  // that multiply with packed weights
  WeightsFigures packed;
  WeightsFigures plain;
};

// Returns the figures of both models, which are the same but for their packed weights, without the
// losses. They decode by turns, so that both meet the same load of the machine; a rate is the
// median of several turns.
QuantizeReport compare_decoding(const LoadedModel& packed, const LoadedModel& plain,
                                DeviceContext& context);

nlohmann::ordered_json quantize_json(const QuantizeReport& report);
void print_quantize_report(const QuantizeReport& report);

}  // namespace trireme
