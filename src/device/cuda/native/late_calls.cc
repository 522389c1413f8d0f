// The functions of cuBLASLt and NCCL that this program calls. Each passes the call on to the
// library, which is loaded at the first one: a program that is linked with this file needs neither
// library to start. A signature that differs from that of the headers does not compile.
#include <cublasLt.h>
#include <cuda_flavour.h>
#include <cuda_runtime.h>
#include <nccl.h>

#include "src/device/cuda/late_library.h"

namespace trireme::cuda {
namespace {

// cuBLASLt has the major version of CUDA in its name. TRIREME_CUBLASLT and TRIREME_NCCL are the
// files that CMake has found; other nodes may have them elsewhere.
LateLibrary& cublaslt() {
  static LateLibrary library(
      {"libcublasLt.so." + std::to_string(CUDART_VERSION / 1000), TRIREME_CUBLASLT});
  return library;
}
LateLibrary& nccl() {
  static LateLibrary library({"libnccl.so.2", TRIREME_NCCL});
  return library;
}

}  // namespace

std::string flavour_cublaslt_error() { return cublaslt().error(); }
std::string flavour_nccl_error() { return nccl().error(); }

}  // namespace trireme::cuda

// Defines a function that calls its namesake in the library.
#define PASS_ON(library, result, name, parameters, arguments)                        \
  result name parameters {                                                           \
    static const auto found =                                                        \
        reinterpret_cast<decltype(&name)>(trireme::cuda::library().function(#name)); \
    return found arguments;                                                          \
  }

extern "C" {

PASS_ON(cublaslt, size_t, cublasLtGetVersion, (), ())
PASS_ON(cublaslt, const char*, cublasLtGetStatusString, (cublasStatus_t status), (status))
PASS_ON(cublaslt, cublasStatus_t, cublasLtCreate, (cublasLtHandle_t * handle), (handle))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmulDescCreate,
        (cublasLtMatmulDesc_t * made, cublasComputeType_t compute, cudaDataType_t scale),
        (made, compute, scale))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t made), (made))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmulDescSetAttribute,
        (cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t attribute, const void* value,
         size_t bytes),
        (made, attribute, value, bytes))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatrixLayoutCreate,
        (cublasLtMatrixLayout_t * made, cudaDataType type, uint64_t rows, uint64_t columns,
         int64_t stride),
        (made, type, rows, columns, stride))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatrixLayoutSetAttribute,
        (cublasLtMatrixLayout_t made, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
         size_t bytes),
        (made, attribute, value, bytes))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t made),
        (made))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmulPreferenceCreate,
        (cublasLtMatmulPreference_t * made), (made))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmulPreferenceDestroy,
        (cublasLtMatmulPreference_t made), (made))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
        (cublasLtMatmulPreference_t made, cublasLtMatmulPreferenceAttributes_t attribute,
         const void* value, size_t bytes),
        (made, attribute, value, bytes))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t made, cublasLtMatrixLayout_t a,
         cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
         cublasLtMatmulPreference_t preference, int wanted,
         cublasLtMatmulHeuristicResult_t results[], int* count),
        (handle, made, a, b, c, d, preference, wanted, results, count))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmulAlgoConfigGetAttribute,
        (const cublasLtMatmulAlgo_t* algorithm, cublasLtMatmulAlgoConfigAttributes_t attribute,
         void* value, size_t bytes, size_t* written),
        (algorithm, attribute, value, bytes, written))
PASS_ON(cublaslt, cublasStatus_t, cublasLtMatmul,
        (cublasLtHandle_t handle, cublasLtMatmulDesc_t made, const void* alpha, const void* a,
         cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
         const void* beta, const void* c, cublasLtMatrixLayout_t c_layout, void* d,
         cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm, void* workspace,
         size_t bytes, cudaStream_t stream),
        (handle, made, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm,
         workspace, bytes, stream))

PASS_ON(nccl, ncclResult_t, ncclGetVersion, (int* version), (version))
PASS_ON(nccl, const char*, ncclGetErrorString, (ncclResult_t result), (result))
PASS_ON(nccl, const char*, ncclGetLastError, (ncclComm_t comm), (comm))
PASS_ON(nccl, ncclResult_t, ncclGetUniqueId, (ncclUniqueId * id), (id))
PASS_ON(nccl, ncclResult_t, ncclCommInitRankConfig,
        (ncclComm_t * comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config),
        (comm, ranks, id, rank, config))
PASS_ON(nccl, ncclResult_t, ncclCommGetAsyncError, (ncclComm_t comm, ncclResult_t* error),
        (comm, error))
PASS_ON(nccl, ncclResult_t, ncclCommFinalize, (ncclComm_t comm), (comm))
PASS_ON(nccl, ncclResult_t, ncclCommDestroy, (ncclComm_t comm), (comm))
PASS_ON(nccl, ncclResult_t, ncclCommAbort, (ncclComm_t comm), (comm))
PASS_ON(nccl, ncclResult_t, ncclCommRegister,
        (const ncclComm_t comm, void* memory, size_t bytes, void** handle),
        (comm, memory, bytes, handle))
PASS_ON(nccl, ncclResult_t, ncclCommDeregister, (const ncclComm_t comm, void* handle),
        (comm, handle))
PASS_ON(nccl, ncclResult_t, ncclMemAlloc, (void** memory, size_t bytes), (memory, bytes))
PASS_ON(nccl, ncclResult_t, ncclMemFree, (void* memory), (memory))
PASS_ON(nccl, ncclResult_t, ncclAllReduce,
        (const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
         ncclComm_t comm, cudaStream_t stream),
        (from, to, count, type, op, comm, stream))
PASS_ON(nccl, ncclResult_t, ncclReduceScatter,
        (const void* from, void* to, size_t count, ncclDataType_t type, ncclRedOp_t op,
         ncclComm_t comm, cudaStream_t stream),
        (from, to, count, type, op, comm, stream))
PASS_ON(nccl, ncclResult_t, ncclAllGather,
        (const void* from, void* to, size_t count, ncclDataType_t type, ncclComm_t comm,
         cudaStream_t stream),
        (from, to, count, type, comm, stream))
PASS_ON(nccl, ncclResult_t, ncclBroadcast,
        (const void* from, void* to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
         cudaStream_t stream),
        (from, to, count, type, root, comm, stream))
PASS_ON(nccl, ncclResult_t, ncclSend,
        (const void* from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
         cudaStream_t stream),
        (from, count, type, peer, comm, stream))
PASS_ON(nccl, ncclResult_t, ncclRecv,
        (void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
         cudaStream_t stream),
        (to, count, type, peer, comm, stream))
PASS_ON(nccl, ncclResult_t, ncclGroupStart, (), ())
PASS_ON(nccl, ncclResult_t, ncclGroupEnd, (), ())
}
