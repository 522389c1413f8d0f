// Writes a checkpoint's weights as a folder that from_pretrained() of Hugging Face's transformers
// loads: config.json, model.safetensors or several files with a list of them, and the files of the
// tokenizer if the checkpoint has them.
#pragma once

#include "src/interchange/export.h"

namespace trireme {

// Collective. The files, and their bytes, do not depend on the number of ranks. Throws DataError if
// the checkpoint is damaged or a weight does not fit the type, and PolicyError if `out` exists, no
// key opens the checkpoint, or it is encrypted without options.plain. After an error nothing is
// left.
ExportResult export_to_hf(const ExportOptions& options, Communicator& world, StepKeys& keys);

}  // namespace trireme
