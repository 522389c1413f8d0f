#include "src/device/sim/cudnn_graph.h"

#include <algorithm>
#include <set>

namespace sim {
namespace {

constexpr std::int64_t kMostHeadDim = 128;
constexpr std::int64_t kHeadDimStep = 8;
constexpr std::int64_t kLeastWorkspace = 256;

std::size_t tensor_element_bytes(cudnnDataType_t type) { return type == CUDNN_DATA_FLOAT ? 4 : 2; }

bool has_16_bits(cudnnDataType_t type) {
  return type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_HALF;
}

bool divides(const Extents& small, const Extents& large) {
  bool fits = true;
  for (std::size_t axis = 0; axis < small.size(); ++axis) {
    // Only heads are shared out in groups.
    const bool shares = axis == 1 && large[axis] % small[axis] == 0;
    fits = fits && (small[axis] == 1 || small[axis] == large[axis] || shares);
  }
  return fits;
}

GraphTensor tensor_of(const Descriptor& descriptor) {
  GraphTensor tensor;
  tensor.id = descriptor.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  tensor.type = descriptor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  std::ranges::copy(descriptor.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
                    tensor.dims.begin());
  std::ranges::copy(descriptor.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
                    tensor.strides.begin());
  tensor.alignment = descriptor.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  tensor.is_virtual = descriptor.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  tensor.is_by_value = descriptor.one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  return tensor;
}

struct OperationNames {
  std::vector<cudnnBackendAttributeName_t> operands;
  cudnnBackendAttributeName_t result;
};

OperationNames names_of(cudnnBackendDescriptorType_t kind) {
  switch (kind) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, CUDNN_ATTR_OPERATION_MATMUL_BDESC},
              CUDNN_ATTR_OPERATION_MATMUL_CDESC};
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
               CUDNN_ATTR_OPERATION_POINTWISE_TDESC},
              CUDNN_ATTR_OPERATION_POINTWISE_YDESC};
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC}, CUDNN_ATTR_OPERATION_REDUCTION_YDESC};
    default:
      return {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC}, CUDNN_ATTR_OPERATION_RESHAPE_YDESC};
  }
}

GraphOperation operation_of(const Descriptor& descriptor) {
  GraphOperation operation;
  operation.kind = descriptor.type();
  const OperationNames names = names_of(descriptor.type());
  for (const auto name : names.operands) {
    if (descriptor.has(name)) {
      operation.operands.push_back(tensor_of(*descriptor.descriptor(name)));
    }
  }
  operation.result = tensor_of(*descriptor.descriptor(names.result));
  if (descriptor.has(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)) {
    const Descriptor& how = *descriptor.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    operation.mode = how.one<int>(CUDNN_ATTR_POINTWISE_MODE);
    operation.axis = how.one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS, -1);
  } else if (descriptor.has(CUDNN_ATTR_OPERATION_REDUCTION_DESC)) {
    operation.mode = descriptor.descriptor(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
                         ->one<int>(CUDNN_ATTR_REDUCTION_OPERATOR);
  }
  return operation;
}

std::size_t operands_of_mode(int mode) {
  switch (mode) {
    case CUDNN_POINTWISE_EXP:
    case CUDNN_POINTWISE_LOG:
    case CUDNN_POINTWISE_GEN_INDEX:
      return 1;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return 3;
    default:
      return 2;
  }
}

cudnnStatus_t check_shapes(const GraphOperation& o) {
  const Extents& y = o.result.dims;
  bool fits = true;
  switch (o.kind) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
      const Extents& a = o.operands[0].dims;
      const Extents& b = o.operands[1].dims;
      fits = a[3] == b[2] && y[2] == a[2] && y[3] == b[3] && y[0] == a[0] && y[1] == a[1] &&
             divides({b[0], b[1], 1, 1}, y);
      break;
    }
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      fits = o.operands.size() == operands_of_mode(o.mode) &&
             (o.mode != CUDNN_POINTWISE_GEN_INDEX || (o.axis >= 0 && o.axis < 4));
      for (const GraphTensor& each : o.operands) {
        fits = fits && (each.dims[1] == 1 || each.dims[1] == y[1]) && divides(each.dims, y);
      }
      break;
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      fits = divides(y, o.operands[0].dims);
      break;
    default:
      fits = !axes_of(o.result, o.operands[0]).empty();
  }
  return fits ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

}  // namespace

std::vector<std::size_t> axes_of(const GraphTensor& y, const GraphTensor& x) {
  std::vector<std::size_t> axes;
  std::set<std::size_t> used;
  for (std::size_t i = 0; i < y.dims.size(); ++i) {
    for (std::size_t j = 0; j < x.dims.size(); ++j) {
      if (!used.contains(j) && y.dims[i] == x.dims[j] && y.strides[i] == x.strides[j]) {
        axes.push_back(j);
        used.insert(j);
        break;
      }
    }
  }
  return axes.size() == y.dims.size() ? axes : std::vector<std::size_t>();
}

std::size_t GraphTensor::span_bytes() const {
  const Extents last = {dims[0] - 1, dims[1] - 1, dims[2] - 1, dims[3] - 1};
  return static_cast<std::size_t>(offset_of(last, strides) + 1) * tensor_element_bytes(type);
}

std::int64_t OperationGraph::head_dim() const {
  std::int64_t most = 0;
  for (const auto& [id, tensor] : in_memory) {
    if (has_16_bits(tensor.type)) {
      most = std::max(most, std::min(tensor.strides[3] == 1 ? tensor.dims[3] : tensor.dims[2],
                                     kMostHeadDim + 1));
    }
  }
  return most;
}

// As cuDNN 9.19 asks for on an H100: attention's backward pass, which has reshapes, stores the
// scores' gradients, padded, and with grouped queries those of keys and values for each query head.
std::int64_t OperationGraph::workspace_bytes() const {
  std::int64_t bytes = 0;
  for (const GraphOperation& each : operations) {
    const Extents& x = each.operands[0].dims;
    const bool is_of_scores =
        each.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR && has_16_bits(each.result.type);
    if (is_of_scores) {
      bytes =
          std::max(bytes, 2 * x[0] * x[1] * ((x[2] + 63) / 64 * 64) * ((x[3] + 127) / 128 * 128));
    }
  }
  for (const GraphOperation& each : operations) {
    const bool is_of_heads =
        each.kind == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR && has_16_bits(each.result.type);
    bytes += is_of_heads ? 2 * each.operands[0].elements() : 0;
  }
  return kLeastWorkspace + bytes;
}

cudnnStatus_t read_graph(const Descriptor& descriptor, OperationGraph& graph) {
  std::set<std::int64_t> computed;
  for (const auto* const each : descriptor.all<const Descriptor*>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
    GraphOperation operation = operation_of(*each);
    if (const cudnnStatus_t status = check_shapes(operation); status != CUDNN_STATUS_SUCCESS) {
      return status;
    }
    for (const GraphTensor& operand : operation.operands) {
      if (operand.is_virtual && !computed.contains(operand.id)) {
        return CUDNN_STATUS_BAD_PARAM;
      }
      if (!operand.is_virtual) {
        graph.in_memory[operand.id] = operand;
      }
    }
    if (operation.result.is_by_value || !computed.insert(operation.result.id).second) {
      return CUDNN_STATUS_BAD_PARAM;
    }
    if (!operation.result.is_virtual) {
      graph.in_memory[operation.result.id] = operation.result;
    }
    graph.operations.push_back(std::move(operation));
  }
  const std::int64_t head_dim = graph.head_dim();
  return head_dim > kMostHeadDim || head_dim % kHeadDimStep != 0 ? CUDNN_STATUS_NOT_SUPPORTED_SHAPE
                                                                 : CUDNN_STATUS_SUCCESS;
}

}  // namespace sim
