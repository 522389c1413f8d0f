// A graph of cuDNN's operations on four-dimensional tensors, and what it computes. Results within
// the graph are kept as fp32 numbers, rounded to their type. Sums are taken in the order of their
// terms.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "src/device/sim/cudnn_descriptor.h"

namespace sim {

using Extents = std::array<std::int64_t, 4>;

struct GraphTensor {
  std::int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Extents dims = {};
  Extents strides = {};
  std::int64_t alignment = 1;
  bool is_virtual = false;
  bool is_by_value = false;

  std::int64_t elements() const { return dims[0] * dims[1] * dims[2] * dims[3]; }
  // Returns the bytes from the first element to the end of the last.
  std::size_t span_bytes() const;
};

// Returns where an element is, in elements from the first.
inline std::int64_t offset_of(const Extents& at, const Extents& strides) {
  return at[0] * strides[0] + at[1] * strides[1] + at[2] * strides[2] + at[3] * strides[3];
}
// Returns for each axis of y the one of x with the same extent and stride; nothing if y is not x
// with its axes in another order.
std::vector<std::size_t> axes_of(const GraphTensor& y, const GraphTensor& x);

struct GraphOperation {
  cudnnBackendDescriptorType_t kind = CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR;
  int mode = 0;           // of a pointwise operation or a reduction
  std::int64_t axis = 0;  // of an index
  std::vector<GraphTensor> operands = {};
  GraphTensor result = {};
};

struct OperationGraph {
  std::vector<GraphOperation> operations;
  // Tensors in memory, and numbers that are passed by value.
  std::map<std::int64_t, GraphTensor> in_memory;

  std::int64_t head_dim() const;
  std::int64_t workspace_bytes() const;
};

// Reads the operations of a graph's descriptor. Returns what cuDNN would for shapes that do not fit
// and for operands that no earlier operation has computed.
cudnnStatus_t read_graph(const Descriptor& descriptor, OperationGraph& graph);

// Computes a graph on addresses of the host, by tensors' numbers.
void compute_graph(const OperationGraph& graph, const std::map<std::int64_t, std::byte*>& data,
                   const std::map<std::int64_t, float>& numbers);

}  // namespace sim
