#include "src/device/sim/cudnn_descriptor.h"

#include <algorithm>
#include <initializer_list>

namespace sim {
namespace {

constexpr std::size_t kDimensions = 4;  // of every tensor of this program

// What a value of a descriptor must be.
struct Rule {
  cudnnBackendAttributeName_t name;
  cudnnBackendAttributeType_t type;
  bool is_required = true;
};

constexpr cudnnBackendAttributeType_t kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;

std::vector<Rule> rules_of(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
              {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64},
              {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64},
              {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
              {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64},
              {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, false},
              {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, false}};
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
      return {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}};
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
              {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE},
              {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, false}};
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
      return {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE},
              {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE}};
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor},
              {CUDNN_ATTR_OPERATION_MATMUL_BDESC, kDescriptor},
              {CUDNN_ATTR_OPERATION_MATMUL_CDESC, kDescriptor},
              {CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor}};
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kDescriptor},
              {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor},
              {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, kDescriptor, false},
              {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, kDescriptor, false},
              {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor}};
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, kDescriptor},
              {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, kDescriptor},
              {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, kDescriptor}};
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, kDescriptor},
              {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, kDescriptor}};
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE},
              {CUDNN_ATTR_OPERATIONGRAPH_OPS, kDescriptor}};
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kDescriptor},
              {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE}};
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE},
              {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor}};
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64},
              {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR},
              {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, false}};
    default:
      return {};
  }
}

std::size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
      return sizeof(bool);
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return sizeof(int);  // an enumeration
  }
}

}  // namespace

cudnnStatus_t Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                              std::int64_t count, const void* values) {
  const std::vector<Rule> rules = rules_of(type_);
  const auto rule =
      std::find_if(rules.begin(), rules.end(), [&](const Rule& each) { return each.name == name; });
  if (is_final_ || rule == rules.end() || rule->type != type || count < 1) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (values == nullptr) {
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  }
  const auto* const first = static_cast<const char*>(values);
  values_[name].assign(first, first + static_cast<std::size_t>(count) * bytes_of(type));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Descriptor::finalize() {
  for (const Rule& rule : rules_of(type_)) {
    if (!has(rule.name)) {
      if (rule.is_required) {
        return CUDNN_STATUS_BAD_PARAM;
      }
      continue;
    }
    if (rule.type != kDescriptor) {
      continue;
    }
    for (const Descriptor* const each : all<const Descriptor*>(rule.name)) {
      if (each == nullptr || !each->is_final()) {
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
      }
    }
  }
  if (type_ == CUDNN_BACKEND_TENSOR_DESCRIPTOR) {
    const bool has_dimensions =
        all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS).size() == kDimensions &&
        all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES).size() == kDimensions;
    if (!has_dimensions) {
      return CUDNN_STATUS_BAD_PARAM;
    }
  }
  is_final_ = true;
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace sim
