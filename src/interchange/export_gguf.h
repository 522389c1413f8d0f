// Writes a checkpoint's weights as one GGUF file for llama.cpp and programs that share its format.
#pragma once

#include "src/interchange/export.h"
#include "src/interchange/quantized.h"

namespace trireme {

// Collective; rank 0 writes the file, OUT/model.gguf. type: of matrices; vectors and learned
// positions stay f32, and matrices whose rows are not whole blocks get another type
// (type_of_part). Throws like export_to_hf().
ExportResult export_to_gguf(const ExportOptions& options, GgufType type, Communicator& world,
                            StepKeys& keys);

}  // namespace trireme
