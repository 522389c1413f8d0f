// Reads and writes config.json, with which Hugging Face's transformers describe a model (GPT2Config
// and LlamaConfig in their sources; the models of Mistral are Llamas without a sliding window, and
// those of Qwen2 have biases of queries, keys and values; Jais is in hf_jais.h).
// Every field of the file is either translated, known to have no effect on the logits, or must have
// the one value with which this program computes. Anything else is refused by name, because a model
// that ignores an option gives wrong text without an error. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/base/json_value.h"
#include "src/device/dtype.h"
#include "src/nn/model_config.h"

namespace trireme {

struct HfConfig {
  std::string model_type;  // "gpt2", "jais", "llama", "mistral" or "qwen2"
  ModelConfig model;       // complete and valid
  JsonValue special_ids;   // see hf_special_ids.h
};

// Throws DataError that names the field if the file is damaged, or describes a model that this
// program does not compute.
HfConfig parse_hf_config(std::string_view text);

// Returns the text of a config.json whose weights have this type. `config.model_type` may be empty,
// which stands for the family's own. Special ids that the model does not have are null.
std::string hf_config_text(const HfConfig& config, DType dtype);

// Returns "float32", "bfloat16" or "float16", as torch names these types.
std::string_view torch_name(DType dtype);

}  // namespace trireme
