#include "src/kernels/cuda/cudnn_graph.h"

#include <algorithm>

#include "src/base/error.h"

namespace trireme::cuda {
namespace {

constexpr std::int64_t kTensorAlignment = 16;  // bytes
constexpr std::int64_t kMostConfigurations = 16;

std::string last_words(const CudnnCalls& calls, cudnnStatus_t status) {
  std::string text(512, '\0');
  calls.last_error(text.data(), text.size());
  text.resize(text.find('\0') == std::string::npos ? text.size() : text.find('\0'));
  return fmt::format("{}{}{}", calls.error_string(status), text.empty() ? "" : ": ", text);
}

}  // namespace

Extents dense_strides(const Extents& dims) {
  return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
}

void cudnn_check(const CudnnCalls& calls, cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) {
    throw DeviceError(fmt::format("cuDNN {}: {} failed: {}", cudnn_version_text(calls.version()),
                                  what, last_words(calls, status)));
  }
}

CudnnDescriptor::CudnnDescriptor(const CudnnCalls& calls, cudnnBackendDescriptorType_t type)
    : calls_(calls) {
  cudnn_check(calls, calls.create_descriptor(type, &descriptor_), "creating a descriptor");
}

CudnnDescriptor::~CudnnDescriptor() { (void)calls_.destroy_descriptor(descriptor_); }

void CudnnDescriptor::set_many(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                               std::int64_t count, const void* values) {
  cudnn_check(calls_, calls_.set_attribute(descriptor_, name, type, count, values),
              "describing an operation");
}

CudnnTensor CudnnGraph::declare(CudnnTensor tensor, bool is_virtual, bool is_by_value) {
  auto made = std::make_shared<CudnnDescriptor>(calls_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made->set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, tensor.type);
  made->set_many(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, tensor.dims.data());
  made->set_many(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, tensor.strides.data());
  made->set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, tensor.id);
  made->set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kTensorAlignment);
  if (is_virtual) {
    made->set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, true);
  }
  if (is_by_value) {
    made->set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, true);
  }
  made->finalize("describing a tensor");
  parts_.push_back(made);
  tensor.descriptor = std::move(made);
  return tensor;
}

CudnnTensor CudnnGraph::in_memory(std::int64_t id, const Extents& dims, const Extents& strides,
                                  cudnnDataType_t type) {
  return declare({.id = id, .dims = dims, .strides = strides, .type = type}, false, false);
}

CudnnTensor CudnnGraph::number(std::int64_t id) {
  return declare({.id = id, .dims = {1, 1, 1, 1}, .strides = {1, 1, 1, 1}}, false, true);
}

CudnnTensor CudnnGraph::within(const Extents& dims, const Extents& strides, cudnnDataType_t type) {
  return declare({.id = next_id_++, .dims = dims, .strides = strides, .type = type}, true, false);
}

void CudnnGraph::append(std::unique_ptr<CudnnDescriptor> operation) {
  operation->finalize("describing an operation");
  operations_.push_back(std::move(operation));
}

CudnnTensor CudnnGraph::matmul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& y) {
  auto how = descriptor(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how->set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how->finalize("describing a product");
  auto operation = descriptor(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation->set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, *a.descriptor);
  operation->set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, *b.descriptor);
  operation->set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, *y.descriptor);
  operation->set(CUDNN_ATTR_OPERATION_MATMUL_DESC, *how);
  parts_.push_back(std::move(how));
  append(std::move(operation));
  return y;
}

CudnnTensor CudnnGraph::pointwise(cudnnPointwiseMode_t mode,
                                  const std::vector<CudnnTensor>& operands, const CudnnTensor& y,
                                  cudnnDataType_t compute) {
  auto how = descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how->set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  how->set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, compute);
  how->finalize("describing an operation by elements");
  auto operation = descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  constexpr std::array kOperands = {CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
                                    CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                    CUDNN_ATTR_OPERATION_POINTWISE_TDESC};
  operation->set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, *how);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    operation->set(kOperands.at(i), *operands[i].descriptor);
  }
  operation->set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y.descriptor);
  parts_.push_back(std::move(how));
  append(std::move(operation));
  return y;
}

CudnnTensor CudnnGraph::index(std::int64_t axis, const CudnnTensor& like) {
  const CudnnTensor y = within(like.dims, CUDNN_DATA_INT32);
  auto how = descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how->set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, CUDNN_POINTWISE_GEN_INDEX);
  how->set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how->set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  how->finalize("describing an index");
  auto operation = descriptor(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation->set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, *how);
  operation->set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *like.descriptor);
  operation->set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, *y.descriptor);
  parts_.push_back(std::move(how));
  append(std::move(operation));
  return y;
}

CudnnTensor CudnnGraph::reduce(cudnnReduceTensorOp_t kind, const CudnnTensor& x,
                               const CudnnTensor& y) {
  auto how = descriptor(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how->set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, kind);
  how->set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  how->finalize("describing a reduction");
  auto operation = descriptor(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  operation->set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, *how);
  operation->set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, *x.descriptor);
  operation->set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, *y.descriptor);
  parts_.push_back(std::move(how));
  append(std::move(operation));
  return y;
}

CudnnTensor CudnnGraph::reshape(const CudnnTensor& x, const CudnnTensor& y) {
  auto operation = descriptor(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  operation->set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, *x.descriptor);
  operation->set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, *y.descriptor);
  append(std::move(operation));
  return y;
}

// Makes the plan of a configuration, unless its engine is not deterministic.
bool CudnnGraph::try_configuration(const CudnnDescriptor& configuration, CudnnPlan& plan,
                                   std::string& why) const {
  const CudnnDescriptor engine(calls_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  std::int64_t found = 0;
  cudnn_check(calls_,
              calls_.get_attribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &found, &raw),
              "asking for an engine");
  cudnn_check(calls_,
              calls_.get_attribute(raw, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &found,
                                   &plan.engine),
              "asking for an engine's number");
  std::array<cudnnBackendNumericalNote_t, 16> notes{};
  cudnn_check(calls_,
              calls_.get_attribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   static_cast<std::int64_t>(notes.size()), &found, notes.data()),
              "asking for an engine's notes");
  if (std::count(notes.begin(), notes.begin() + found, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) > 0) {
    why = fmt::format("engine {} is not deterministic", plan.engine);
    return false;
  }
  plan.plan = descriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_);
  plan.plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
  if (const cudnnStatus_t status = plan.plan->try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    why = last_words(calls_, status);
    return false;
  }
  cudnn_check(calls_,
              calls_.get_attribute(plan.plan->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                   CUDNN_TYPE_INT64, 1, &found, &plan.workspace_bytes),
              "asking for a plan's workspace");
  return true;
}

std::unique_ptr<CudnnPlan> CudnnGraph::make_plan(std::string& why) {
  auto plan = std::make_unique<CudnnPlan>();
  plan->graph = descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const auto& operation : operations_) {
    operations.push_back(operation->get());
  }
  plan->graph->set_many(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        static_cast<std::int64_t>(operations.size()), operations.data());
  plan->graph->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle_);
  if (const cudnnStatus_t status = plan->graph->try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    why = last_words(calls_, status);
    return nullptr;
  }
  CudnnDescriptor heuristic(calls_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *plan->graph);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  if (const cudnnStatus_t status = heuristic.try_finalize(); status != CUDNN_STATUS_SUCCESS) {
    why = last_words(calls_, status);
    return nullptr;
  }
  std::vector<std::unique_ptr<CudnnDescriptor>> configurations;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::int64_t i = 0; i < kMostConfigurations; ++i) {
    configurations.push_back(descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw.push_back(configurations.back()->get());
  }
  std::int64_t found = 0;
  cudnn_check(
      calls_,
      calls_.get_attribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                           CUDNN_TYPE_BACKEND_DESCRIPTOR, kMostConfigurations, &found, raw.data()),
      "asking for engines");
  why = "it has no engine for this shape";
  for (std::int64_t i = 0; i < std::min(found, kMostConfigurations); ++i) {
    auto& configuration = configurations[static_cast<std::size_t>(i)];
    if (try_configuration(*configuration, *plan, why)) {
      plan->parts = std::move(parts_);
      plan->parts.insert(plan->parts.end(), operations_.begin(), operations_.end());
      plan->parts.push_back(std::move(configuration));
      return plan;
    }
  }
  return nullptr;
}

}  // namespace trireme::cuda
