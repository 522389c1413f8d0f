// Computes what an ONNX graph computes, in double and in the plainest way: one loop per operator,
// weights one after the other. It knows the operators of exports, and shares no code with the
// layers and kernels, so that the comparison at the end of an export tries the graph that was
// written.
//
// Source: the operators' definitions of operator set 17 (github.com/onnx/onnx, docs/Operators.md).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "src/interchange/onnx/onnx_model.h"

namespace trireme {

// Returns all elements of a tensor that lies beside the model.
using ReadOnnxTensor = std::function<std::vector<float>(const OnnxTensor& tensor)>;

// ids: at least one, each a token of the model; the batch is 1. threads: at least 1. Returns the
// first output of the model. Throws DataError that names the node if it cannot be computed.
std::vector<double> run_onnx(const OnnxModel& model, const ReadOnnxTensor& read,
                             std::span<const std::int32_t> ids, int threads);

}  // namespace trireme
