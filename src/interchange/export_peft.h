// Writes the adapters of a checkpoint in the format of Hugging Face's PEFT, from which
// PeftModel.from_pretrained() loads them beside the model that they fine-tune:
//
//   adapter_config.json
//   adapter_model.safetensors      base_model.model.MODULE.lora_A.weight [r,in], lora_B.weight
//   [out,r]
#pragma once

#include "src/interchange/export.h"

namespace trireme {

// Collective. At the end, compares the logits of the files, added to the weights of the base, with
// those of the checkpoint. Throws what open_step() throws, ConfigError if the checkpoint holds no
// adapters, and PolicyError if `out` exists. After an error nothing is left.
ExportResult export_to_peft(const ExportOptions& options, Communicator& world, StepKeys& keys);

}  // namespace trireme
