// CudnnGraph builds a graph of operations for cuDNN and makes a plan that computes it. Tensors have
// four dimensions, [B, H, rows, columns]. Owned by a CudnnPlan's maker; one thread.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "src/kernels/cuda/cudnn_library.h"

namespace trireme::cuda {

using Extents = std::array<std::int64_t, 4>;

// Returns the strides of a dense row-major tensor.
Extents dense_strides(const Extents& dims);

// Throws DeviceError that names what failed, with cuDNN's own words.
void cudnn_check(const CudnnCalls& calls, cudnnStatus_t status, const char* what);

// CudnnDescriptor owns a descriptor of cuDNN.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnCalls& calls, cudnnBackendDescriptorType_t type);
  ~CudnnDescriptor();
  CudnnDescriptor(const CudnnDescriptor&) = delete;
  CudnnDescriptor& operator=(const CudnnDescriptor&) = delete;

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set_many(name, type, 1, &value);
  }
  void set_many(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                std::int64_t count, const void* values);
  void set(cudnnBackendAttributeName_t name, const CudnnDescriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, value.get());
  }
  // Returns the status, for what cuDNN may refuse.
  cudnnStatus_t try_finalize() { return calls_.finalize(descriptor_); }
  void finalize(const char* what) { cudnn_check(calls_, try_finalize(), what); }
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  const CudnnCalls& calls_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

struct CudnnTensor {
  std::int64_t id = 0;
  Extents dims = {};
  Extents strides = {};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::shared_ptr<CudnnDescriptor> descriptor = {};
};

// CudnnPlan is how one engine of cuDNN computes a graph.
struct CudnnPlan {
  std::vector<std::shared_ptr<CudnnDescriptor>> parts;  // what the graph refers to
  std::unique_ptr<CudnnDescriptor> graph;
  std::unique_ptr<CudnnDescriptor> plan;
  std::int64_t engine = 0;
  std::int64_t workspace_bytes = 0;
};

class CudnnGraph {
 public:
  CudnnGraph(const CudnnCalls& calls, cudnnHandle_t handle) : calls_(calls), handle_(handle) {}

  // Declare a tensor in device memory, aligned to 16 bytes; an f32 number that the host passes; and
  // a result that only exists within the graph.
  CudnnTensor in_memory(std::int64_t id, const Extents& dims, const Extents& strides,
                        cudnnDataType_t type);
  CudnnTensor number(std::int64_t id);
  CudnnTensor within(const Extents& dims, const Extents& strides, cudnnDataType_t type);
  CudnnTensor within(const Extents& dims, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return within(dims, dense_strides(dims), type);
  }

  // Append an operation with result y, and return y.
  CudnnTensor matmul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& y);
  CudnnTensor pointwise(cudnnPointwiseMode_t mode, const std::vector<CudnnTensor>& operands,
                        const CudnnTensor& y, cudnnDataType_t compute = CUDNN_DATA_FLOAT);
  CudnnTensor index(std::int64_t axis, const CudnnTensor& like);
  CudnnTensor reduce(cudnnReduceTensorOp_t operation, const CudnnTensor& x, const CudnnTensor& y);
  CudnnTensor reshape(const CudnnTensor& x, const CudnnTensor& y);

  // Returns the first plan that cuDNN proposes, supports, and does not call nondeterministic; null
  // if there is none, and then its last words. Called once, at the end.
  std::unique_ptr<CudnnPlan> make_plan(std::string& why);

 private:
  CudnnTensor declare(CudnnTensor tensor, bool is_virtual, bool is_by_value);
  void append(std::unique_ptr<CudnnDescriptor> operation);
  std::unique_ptr<CudnnDescriptor> descriptor(cudnnBackendDescriptorType_t type) const {
    return std::make_unique<CudnnDescriptor>(calls_, type);
  }
  bool try_configuration(const CudnnDescriptor& configuration, CudnnPlan& plan,
                         std::string& why) const;

  const CudnnCalls& calls_;
  cudnnHandle_t handle_;
  std::int64_t next_id_ = 1000;                               // of results within the graph
  std::vector<std::shared_ptr<CudnnDescriptor>> parts_;       // what operations refer to
  std::vector<std::shared_ptr<CudnnDescriptor>> operations_;  // in the order of their results
};

}  // namespace trireme::cuda
