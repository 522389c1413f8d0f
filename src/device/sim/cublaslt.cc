// cuBLASLt's interface over the simulated device. Its heuristic knows one algorithm, which takes a
// small workspace where it may, and splits sums where that is not forbidden. On request (fault.h)
// it proposes another one, which adds up both halves of each sum. Only the real library knows which
// epilogues it has for a shape.
#include <cstring>
#include <initializer_list>
#include <vector>

#include <cublasLt.h>

#include "src/device/sim/fault.h"
#include "src/device/sim/machine.h"
#include "src/device/sim/matrix_product.h"

struct cublasLtContext {};
struct cublasLtMatmulDescOpaque_t {
  std::int32_t transposes_a = CUBLAS_OP_N;
  std::int32_t transposes_b = CUBLAS_OP_N;
  std::int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  std::int32_t bias_type = -1;  // that of d
  std::int32_t aux_type = -1;   // that of d
  void* bias = nullptr;
  void* aux = nullptr;
  std::int64_t aux_leading_dimension = 0;
  const void* a_scale = nullptr;
  const void* b_scale = nullptr;
};
struct cublasLtMatrixLayoutOpaque_t {
  sim::MatrixLayout layout;
};
struct cublasLtMatmulPreferenceOpaque_t {
  std::uint64_t max_workspace_bytes = 0;
  std::uint32_t reduction_schemes = 0xFFFFFFFFu;
  std::uint32_t alignments[4] = {256, 256, 256, 256};  // of a, b, c and d, in bytes
};

namespace {

constexpr std::size_t kCublasVersion = 130002;
constexpr std::uint64_t kWorkspaceBytes = 4096;
constexpr std::uintptr_t kScaleAlignment = 16;
constexpr std::uintptr_t kWorkspaceAlignment = 256;
constexpr int kSplitsSums = 5;  // index of an algorithm's data, behind workspace and alignments
constexpr int kAddsHalves = 6;
constexpr std::int64_t kLostTerms = 8;

struct Field {
  void* data = nullptr;
  std::size_t bytes = 0;
};

Field field_of(cublasLtMatmulDesc_t to, cublasLtMatmulDescAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return {&to->transposes_a, sizeof to->transposes_a};
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return {&to->transposes_b, sizeof to->transposes_b};
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return {&to->epilogue, sizeof to->epilogue};
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return {&to->bias, sizeof to->bias};
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return {&to->bias_type, sizeof to->bias_type};
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return {&to->aux, sizeof to->aux};
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return {&to->aux_leading_dimension, sizeof to->aux_leading_dimension};
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE:
      return {&to->aux_type, sizeof to->aux_type};
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return {&to->a_scale, sizeof to->a_scale};
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return {&to->b_scale, sizeof to->b_scale};
  }
  return {};
}

cublasStatus_t set_field(const Field& field, const void* value, std::size_t bytes) {
  if (field.data == nullptr || value == nullptr || bytes != field.bytes) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(field.data, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cudaDataType type_or(std::int32_t chosen, cudaDataType otherwise) {
  return chosen < 0 ? otherwise : static_cast<cudaDataType>(chosen);
}

sim::MatrixProduct product_of(const cublasLtMatmulDescOpaque_t& description,
                              const sim::MatrixLayout& a, const sim::MatrixLayout& b,
                              const sim::MatrixLayout& c, const sim::MatrixLayout& d) {
  sim::MatrixProduct product;
  product.a = a;
  product.b = b;
  product.c = c;
  product.d = d;
  product.transposes_a = description.transposes_a != CUBLAS_OP_N;
  product.transposes_b = description.transposes_b != CUBLAS_OP_N;
  product.epilogue = description.epilogue;
  product.bias = description.bias;
  product.bias_type = type_or(description.bias_type, d.type);
  product.aux = description.aux;
  product.aux_type = type_or(description.aux_type, d.type);
  product.aux_leading_dimension = description.aux_leading_dimension;
  product.a_scale = description.a_scale;
  product.b_scale = description.b_scale;
  return product;
}

// Returns whether the addresses have the alignment that the heuristic was promised.
bool are_aligned(const cublasLtMatmulAlgo_t& algo, std::initializer_list<const void*> operands) {
  const std::uint64_t* alignment = algo.data + 1;
  for (const void* operand : operands) {
    if (*alignment != 0 && reinterpret_cast<std::uintptr_t>(operand) % *alignment != 0) {
      return false;
    }
    ++alignment;
  }
  return true;
}

// Returns what describes an algorithm of the simulated device: these numbers mean nothing
// elsewhere.
std::uint32_t configured(const cublasLtMatmulAlgo_t& algo,
                         cublasLtMatmulAlgoConfigAttributes_t attribute) {
  switch (attribute) {
    case CUBLASLT_ALGO_CONFIG_ID:
      return 1;
    case CUBLASLT_ALGO_CONFIG_TILE_ID:
      return algo.data[kAddsHalves] == 0 ? 20 : 18;
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM:
      return algo.data[kSplitsSums] == 0 ? 1 : 3;
    default:
      return 0;
  }
}

cublasStatus_t injected_status(const char* call) {
  return static_cast<cublasStatus_t>(sim::take_fault(call).error);
}

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() { return kCublasVersion; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  const cublasStatus_t status = injected_status("cublasLtCreate");
  *handle = status == CUBLAS_STATUS_SUCCESS ? new cublasLtContext : nullptr;
  return status;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description,
                                        cublasComputeType_t compute, cudaDataType_t scale) {
  if (scale != CUDA_R_32F ||
      (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32)) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  *description = new cublasLtMatmulDescOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  delete description;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, std::size_t bytes) {
  return set_field(field_of(description, attribute), value, bytes);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading_dimension) {
  *layout =
      new cublasLtMatrixLayoutOpaque_t{{type, static_cast<std::int64_t>(rows),
                                        static_cast<std::int64_t>(columns), leading_dimension}};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return set_field({&layout->layout.batch, 4}, value, bytes);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set_field({&layout->layout.batch_offset, 8}, value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete layout;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = new cublasLtMatmulPreferenceOpaque_t;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete preference;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, std::size_t bytes) {
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set_field({&preference->max_workspace_bytes, 8}, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set_field({&preference->reduction_schemes, 4}, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set_field(
          {&preference->alignments[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], 4},
          value, bytes);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  *found = 0;
  const sim::Fault fault = sim::take_fault("cublasLtMatmulAlgoGetHeuristic");
  auto status = static_cast<cublasStatus_t>(fault.error);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status =
        sim::check_product(product_of(*description, a->layout, b->layout, c->layout, d->layout));
  }
  if (status != CUBLAS_STATUS_SUCCESS || requested < 1) {
    return status != CUBLAS_STATUS_SUCCESS ? status : CUBLAS_STATUS_INVALID_VALUE;
  }
  results[0] = {};
  results[0].workspaceSize =
      preference->max_workspace_bytes >= kWorkspaceBytes ? kWorkspaceBytes : 0;
  results[0].algo.data[0] = results[0].workspaceSize;
  for (int operand = 0; operand < 4; ++operand) {
    results[0].algo.data[1 + operand] = preference->alignments[operand];
  }
  results[0].algo.data[kSplitsSums] =
      preference->reduction_schemes != CUBLASLT_REDUCTION_SCHEME_NONE ? 1 : 0;
  results[0].algo.data[kAddsHalves] = fault.other ? 1 : 0;
  results[0].wavesCount = 1;
  *found = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                    void* value, std::size_t bytes,
                                                    std::size_t* written) {
  const std::uint32_t wide = configured(*algo, attribute);
  const auto narrow = static_cast<std::uint16_t>(wide);
  const bool is_narrow = attribute == CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID ||
                         attribute == CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID;
  const std::size_t size = is_narrow ? sizeof narrow : sizeof wide;
  if (value == nullptr || bytes != size) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::memcpy(value, is_narrow ? static_cast<const void*>(&narrow) : &wide, size);
  if (written != nullptr) {
    *written = size;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  const sim::Fault fault = sim::take_fault("cublasLtMatmul");
  if (fault.error != 0) {
    return static_cast<cublasStatus_t>(fault.error);
  }
  if (handle == nullptr) {
    return CUBLAS_STATUS_NOT_INITIALIZED;
  }
  sim::MatrixProduct product = product_of(*description, a_layout->layout, b_layout->layout,
                                          c_layout->layout, d_layout->layout);
  product.alpha = *static_cast<const float*>(alpha);
  product.beta = *static_cast<const float*>(beta);
  product.a_data = a;
  product.b_data = b;
  product.c_data = c;
  product.d_data = d;
  product.splits_sums = algo != nullptr && algo->data[kSplitsSums] != 0;
  product.adds_halves = algo != nullptr && algo->data[kAddsHalves] != 0;
  product.lost_terms = fault.wrong ? kLostTerms : 0;
  if (const cublasStatus_t status = sim::check_product(product); status != CUBLAS_STATUS_SUCCESS) {
    return status;
  }
  // As cuBLASLt 13 was seen to do on an H200.
  for (const void* scale : {product.a_scale, product.b_scale}) {
    if (reinterpret_cast<std::uintptr_t>(scale) % kScaleAlignment != 0) {
      return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  }
  if (algo != nullptr && !are_aligned(*algo, {a, b, c, d})) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  const std::uint64_t needed = algo == nullptr ? 0 : algo->data[0];
  if (needed > workspace_bytes ||
      (needed > 0 && reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0)) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::vector<sim::MatrixProduct> batch;
  for (std::int64_t i = 0; i < product.d.batch; ++i) {
    batch.push_back(sim::member_of_batch(product, i));
    sim::check_operands(batch.back());
  }
  const cudaError_t error = sim::machine().enqueue(stream, [=] {
    if (needed > 0) {
      std::memset(sim::accessible(workspace), 0xFF, needed);
    }
    for (const sim::MatrixProduct& each : batch) {
      sim::compute_product(each);
    }
    return true;
  });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
}
