// Writes a checkpoint's weights as a model of ONNX: `model.onnx` with the graph, `model.onnx.data`
// with the weights, and the files of the tokenizer if the checkpoint has them; on demand as a
// folder of a model repository of Triton's inference server, which runs it with ONNX Runtime.
#pragma once

#include "src/interchange/export.h"
#include "src/interchange/onnx/onnx_model.h"

namespace trireme {

enum class OnnxFolder : std::uint8_t { plain, triton };

// Collective; rank 0 writes. type: f32, or f16 or bf16 for matrices. The comparison of logits runs
// the graph that was written. The errors are those of export_to_hf().
ExportResult export_to_onnx(const ExportOptions& options, OnnxType type, OnnxFolder folder,
                            Communicator& world, StepKeys& keys);

}  // namespace trireme
