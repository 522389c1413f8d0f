// Builds the ONNX graph of a GPT-2 or Llama model: from input_ids [batch, sequence] to logits
// [batch, sequence, vocab], for a whole text at a time, in fp32. A pure function.
#pragma once

#include <string>
#include <vector>

#include "src/interchange/onnx/onnx_model.h"
#include "src/nn/model_config.h"

namespace trireme {

// OnnxWeight says from which tensor of the model one of the graph is taken.
struct OnnxWeight {
  std::string source;
  bool is_transposed = false;  // [out,in] in the model, and [in,out] in the graph
  std::size_t tensor = 0;      // of OnnxModel::tensors
};

struct OnnxGraph {
  OnnxModel model;
  std::vector<OnnxWeight> weights;  // in the order of their places in the data file
  std::int64_t data_bytes = 0;      // of the data file
};

// config: complete and valid. type: f32, or f16 or bf16 for matrices, which the graph widens before
// it computes. data_file: the name of the file beside the model that holds the weights, each at a
// multiple of 4096 bytes, so that it can be mapped.
OnnxGraph onnx_graph(const ModelConfig& config, OnnxType type, const std::string& data_file);

}  // namespace trireme
