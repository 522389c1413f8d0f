// Checks what this program assumes about the interfaces of CUDA, cuBLASLt and NCCL: types of
// functions, values of constants, alignments. Compiled with the stand-in headers as part of the
// tests, and with the real ones where they are installed: if both compile, they agree.
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <nccl.h>

namespace trireme {
namespace {

#define SIGNATURE(result, name, parameters) \
  [[maybe_unused]] result(*const type_of_##name) parameters = &::name

SIGNATURE(cudaError_t, cudaGetDeviceCount, (int*));
SIGNATURE(cudaError_t, cudaGetDevice, (int*));
SIGNATURE(cudaError_t, cudaSetDevice, (int));
SIGNATURE(cudaError_t, cudaGetDeviceProperties, (cudaDeviceProp*, int));
SIGNATURE(cudaError_t, cudaDeviceGetAttribute, (int*, cudaDeviceAttr, int));
SIGNATURE(cudaError_t, cudaDeviceGetPCIBusId, (char*, int, int));
SIGNATURE(cudaError_t, cudaDeviceCanAccessPeer, (int*, int, int));
SIGNATURE(cudaError_t, cudaDeviceEnablePeerAccess, (int, unsigned));
SIGNATURE(cudaError_t, cudaDeviceGetStreamPriorityRange, (int*, int*));
SIGNATURE(cudaError_t, cudaDeviceSynchronize, ());
SIGNATURE(cudaError_t, cudaRuntimeGetVersion, (int*));
SIGNATURE(cudaError_t, cudaDriverGetVersion, (int*));
SIGNATURE(cudaError_t, cudaFuncGetAttributes, (cudaFuncAttributes*, const void*));
SIGNATURE(cudaError_t, cudaGetLastError, ());
SIGNATURE(cudaError_t, cudaPeekAtLastError, ());
SIGNATURE(const char*, cudaGetErrorName, (cudaError_t));
SIGNATURE(const char*, cudaGetErrorString, (cudaError_t));
SIGNATURE(cudaError_t, cudaMalloc, (void**, std::size_t));
SIGNATURE(cudaError_t, cudaFree, (void*));
SIGNATURE(cudaError_t, cudaMallocAsync, (void**, std::size_t, cudaStream_t));
SIGNATURE(cudaError_t, cudaFreeAsync, (void*, cudaStream_t));
SIGNATURE(cudaError_t, cudaMemGetInfo, (std::size_t*, std::size_t*));
SIGNATURE(cudaError_t, cudaMallocHost, (void**, std::size_t));
SIGNATURE(cudaError_t, cudaHostAlloc, (void**, std::size_t, unsigned));
SIGNATURE(cudaError_t, cudaFreeHost, (void*));
SIGNATURE(cudaError_t, cudaHostRegister, (void*, std::size_t, unsigned));
SIGNATURE(cudaError_t, cudaHostUnregister, (void*));
SIGNATURE(cudaError_t, cudaPointerGetAttributes, (cudaPointerAttributes*, const void*));
SIGNATURE(cudaError_t, cudaMemcpy, (void*, const void*, std::size_t, cudaMemcpyKind));
SIGNATURE(cudaError_t, cudaMemcpyAsync,
          (void*, const void*, std::size_t, cudaMemcpyKind, cudaStream_t));
SIGNATURE(cudaError_t, cudaMemcpy2DAsync,
          (void*, std::size_t, const void*, std::size_t, std::size_t, std::size_t, cudaMemcpyKind,
           cudaStream_t));
SIGNATURE(cudaError_t, cudaMemset, (void*, int, std::size_t));
SIGNATURE(cudaError_t, cudaMemsetAsync, (void*, int, std::size_t, cudaStream_t));
SIGNATURE(cudaError_t, cudaStreamCreateWithFlags, (cudaStream_t*, unsigned));
SIGNATURE(cudaError_t, cudaStreamCreateWithPriority, (cudaStream_t*, unsigned, int));
SIGNATURE(cudaError_t, cudaStreamDestroy, (cudaStream_t));
SIGNATURE(cudaError_t, cudaStreamSynchronize, (cudaStream_t));
SIGNATURE(cudaError_t, cudaStreamQuery, (cudaStream_t));
SIGNATURE(cudaError_t, cudaStreamWaitEvent, (cudaStream_t, cudaEvent_t, unsigned));
SIGNATURE(cudaError_t, cudaLaunchHostFunc, (cudaStream_t, cudaHostFn_t, void*));
SIGNATURE(cudaError_t, cudaEventCreateWithFlags, (cudaEvent_t*, unsigned));
SIGNATURE(cudaError_t, cudaEventDestroy, (cudaEvent_t));
SIGNATURE(cudaError_t, cudaEventRecord, (cudaEvent_t, cudaStream_t));
SIGNATURE(cudaError_t, cudaEventQuery, (cudaEvent_t));
SIGNATURE(cudaError_t, cudaEventSynchronize, (cudaEvent_t));
SIGNATURE(cudaError_t, cudaEventElapsedTime, (float*, cudaEvent_t, cudaEvent_t));
SIGNATURE(cudaError_t, cudaStreamBeginCapture, (cudaStream_t, cudaStreamCaptureMode));
SIGNATURE(cudaError_t, cudaStreamIsCapturing, (cudaStream_t, cudaStreamCaptureStatus*));
SIGNATURE(cudaError_t, cudaStreamEndCapture, (cudaStream_t, cudaGraph_t*));
SIGNATURE(cudaError_t, cudaGraphInstantiate, (cudaGraphExec_t*, cudaGraph_t, unsigned long long));
SIGNATURE(cudaError_t, cudaGraphGetNodes, (cudaGraph_t, cudaGraphNode_t*, std::size_t*));
SIGNATURE(cudaError_t, cudaGraphLaunch, (cudaGraphExec_t, cudaStream_t));
SIGNATURE(cudaError_t, cudaGraphDestroy, (cudaGraph_t));
SIGNATURE(cudaError_t, cudaGraphExecDestroy, (cudaGraphExec_t));

SIGNATURE(const char*, cublasGetStatusName, (cublasStatus_t));
SIGNATURE(const char*, cublasGetStatusString, (cublasStatus_t));
SIGNATURE(const char*, cublasLtGetStatusString, (cublasStatus_t));
SIGNATURE(std::size_t, cublasLtGetVersion, ());
SIGNATURE(cublasStatus_t, cublasLtCreate, (cublasLtHandle_t*));
SIGNATURE(cublasStatus_t, cublasLtDestroy, (cublasLtHandle_t));
SIGNATURE(cublasStatus_t, cublasLtMatmulDescCreate,
          (cublasLtMatmulDesc_t*, cublasComputeType_t, cudaDataType_t));
SIGNATURE(cublasStatus_t, cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t));
SIGNATURE(cublasStatus_t, cublasLtMatmulDescSetAttribute,
          (cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*, std::size_t));
SIGNATURE(cublasStatus_t, cublasLtMatrixLayoutCreate,
          (cublasLtMatrixLayout_t*, cudaDataType, std::uint64_t, std::uint64_t, std::int64_t));
SIGNATURE(cublasStatus_t, cublasLtMatrixLayoutSetAttribute,
          (cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*, std::size_t));
SIGNATURE(cublasStatus_t, cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t));
SIGNATURE(cublasStatus_t, cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t*));
SIGNATURE(cublasStatus_t, cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t));
SIGNATURE(cublasStatus_t, cublasLtMatmulPreferenceSetAttribute,
          (cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*,
           std::size_t));
SIGNATURE(cublasStatus_t, cublasLtMatmulAlgoGetHeuristic,
          (cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
           cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
           cublasLtMatmulHeuristicResult_t*, int*));
SIGNATURE(cublasStatus_t, cublasLtMatmulAlgoConfigGetAttribute,
          (const cublasLtMatmulAlgo_t*, cublasLtMatmulAlgoConfigAttributes_t, void*, std::size_t,
           std::size_t*));
SIGNATURE(cublasStatus_t, cublasLtMatmul,
          (cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
           const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t,
           void*, cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t*, void*, std::size_t,
           cudaStream_t));

SIGNATURE(ncclResult_t, ncclGetVersion, (int*));
SIGNATURE(const char*, ncclGetErrorString, (ncclResult_t));
SIGNATURE(const char*, ncclGetLastError, (ncclComm_t));
SIGNATURE(ncclResult_t, ncclGetUniqueId, (ncclUniqueId*));
SIGNATURE(ncclResult_t, ncclCommInitRank, (ncclComm_t*, int, ncclUniqueId, int));
SIGNATURE(ncclResult_t, ncclCommInitRankConfig,
          (ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*));
SIGNATURE(ncclResult_t, ncclCommSplit, (ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*));
SIGNATURE(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t, ncclResult_t*));
SIGNATURE(ncclResult_t, ncclCommCount, (const ncclComm_t, int*));
SIGNATURE(ncclResult_t, ncclCommUserRank, (const ncclComm_t, int*));
SIGNATURE(ncclResult_t, ncclCommCuDevice, (const ncclComm_t, int*));
SIGNATURE(ncclResult_t, ncclCommFinalize, (ncclComm_t));
SIGNATURE(ncclResult_t, ncclCommDestroy, (ncclComm_t));
SIGNATURE(ncclResult_t, ncclCommAbort, (ncclComm_t));
SIGNATURE(ncclResult_t, ncclMemAlloc, (void**, std::size_t));
SIGNATURE(ncclResult_t, ncclMemFree, (void*));
SIGNATURE(ncclResult_t, ncclCommRegister, (const ncclComm_t, void*, std::size_t, void**));
SIGNATURE(ncclResult_t, ncclCommDeregister, (const ncclComm_t, void*));
SIGNATURE(ncclResult_t, ncclAllReduce,
          (const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t));
SIGNATURE(ncclResult_t, ncclReduceScatter,
          (const void*, void*, std::size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t));
SIGNATURE(ncclResult_t, ncclAllGather,
          (const void*, void*, std::size_t, ncclDataType_t, ncclComm_t, cudaStream_t));
SIGNATURE(ncclResult_t, ncclBroadcast,
          (const void*, void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
SIGNATURE(ncclResult_t, ncclSend,
          (const void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
SIGNATURE(ncclResult_t, ncclRecv,
          (void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t));
SIGNATURE(ncclResult_t, ncclGroupStart, ());
SIGNATURE(ncclResult_t, ncclGroupEnd, ());

#define VALUE(name, number) static_assert(static_cast<int>(name) == (number))

VALUE(cudaSuccess, 0);
VALUE(cudaErrorInvalidValue, 1);
VALUE(cudaErrorMemoryAllocation, 2);
VALUE(cudaErrorInitializationError, 3);
VALUE(cudaErrorCudartUnloading, 4);
VALUE(cudaErrorInvalidConfiguration, 9);
VALUE(cudaErrorInsufficientDriver, 35);
VALUE(cudaErrorDevicesUnavailable, 46);
VALUE(cudaErrorInvalidDeviceFunction, 98);
VALUE(cudaErrorNoDevice, 100);
VALUE(cudaErrorInvalidDevice, 101);
VALUE(cudaErrorNoKernelImageForDevice, 209);
VALUE(cudaErrorECCUncorrectable, 214);
VALUE(cudaErrorNvlinkUncorrectable, 220);
VALUE(cudaErrorInvalidResourceHandle, 400);
VALUE(cudaErrorNotReady, 600);
VALUE(cudaErrorIllegalAddress, 700);
VALUE(cudaErrorLaunchOutOfResources, 701);
VALUE(cudaErrorLaunchTimeout, 702);
VALUE(cudaErrorPeerAccessAlreadyEnabled, 704);
VALUE(cudaErrorHostMemoryAlreadyRegistered, 712);
VALUE(cudaErrorHostMemoryNotRegistered, 713);
VALUE(cudaErrorHardwareStackError, 714);
VALUE(cudaErrorMisalignedAddress, 716);
VALUE(cudaErrorLaunchFailure, 719);
VALUE(cudaErrorSystemNotReady, 802);
VALUE(cudaErrorSystemDriverMismatch, 803);
VALUE(cudaErrorStreamCaptureUnsupported, 900);
VALUE(cudaErrorStreamCaptureInvalidated, 901);
VALUE(cudaErrorStreamCaptureUnmatched, 903);
VALUE(cudaErrorStreamCaptureUnjoined, 904);
VALUE(cudaErrorStreamCaptureIsolation, 905);
VALUE(cudaErrorStreamCaptureImplicit, 906);
VALUE(cudaErrorCapturedEvent, 907);
VALUE(cudaErrorStreamCaptureWrongThread, 908);
VALUE(cudaErrorUnknown, 999);
VALUE(cudaMemcpyHostToHost, 0);
VALUE(cudaMemcpyHostToDevice, 1);
VALUE(cudaMemcpyDeviceToHost, 2);
VALUE(cudaMemcpyDeviceToDevice, 3);
VALUE(cudaMemcpyDefault, 4);
VALUE(cudaMemoryTypeUnregistered, 0);
VALUE(cudaMemoryTypeHost, 1);
VALUE(cudaMemoryTypeDevice, 2);
VALUE(cudaMemoryTypeManaged, 3);
VALUE(cudaFuncAttributeMaxDynamicSharedMemorySize, 8);
VALUE(cudaStreamCaptureModeGlobal, 0);
VALUE(cudaStreamCaptureModeThreadLocal, 1);
VALUE(cudaStreamCaptureModeRelaxed, 2);
VALUE(cudaStreamCaptureStatusNone, 0);
VALUE(cudaStreamCaptureStatusActive, 1);
VALUE(cudaStreamCaptureStatusInvalidated, 2);
VALUE(cudaDevAttrMultiProcessorCount, 16);
VALUE(cudaDevAttrIntegrated, 18);
VALUE(cudaDevAttrEccEnabled, 32);
VALUE(cudaDevAttrComputeCapabilityMajor, 75);
VALUE(cudaDevAttrComputeCapabilityMinor, 76);
VALUE(cudaDevAttrMaxSharedMemoryPerBlockOptin, 97);
VALUE(cudaStreamDefault, 0);
VALUE(cudaStreamNonBlocking, 1);
VALUE(cudaEventDefault, 0);
VALUE(cudaEventDisableTiming, 2);
VALUE(cudaHostRegisterDefault, 0);
VALUE(cudaHostRegisterPortable, 1);
VALUE(cudaHostAllocDefault, 0);
VALUE(cudaHostAllocPortable, 1);

VALUE(CUDA_R_32F, 0);
VALUE(CUDA_R_64F, 1);
VALUE(CUDA_R_16F, 2);
VALUE(CUDA_R_8I, 3);
VALUE(CUDA_R_16BF, 14);
VALUE(CUDA_R_8F_E4M3, 28);
VALUE(CUDA_R_8F_E5M2, 29);

VALUE(CUBLAS_STATUS_SUCCESS, 0);
VALUE(CUBLAS_STATUS_NOT_INITIALIZED, 1);
VALUE(CUBLAS_STATUS_ALLOC_FAILED, 3);
VALUE(CUBLAS_STATUS_INVALID_VALUE, 7);
VALUE(CUBLAS_STATUS_EXECUTION_FAILED, 13);
VALUE(CUBLAS_STATUS_INTERNAL_ERROR, 14);
VALUE(CUBLAS_STATUS_NOT_SUPPORTED, 15);
VALUE(CUBLAS_OP_N, 0);
VALUE(CUBLAS_OP_T, 1);
VALUE(CUBLAS_COMPUTE_32F, 68);
VALUE(CUBLAS_COMPUTE_32F_FAST_TF32, 77);
VALUE(CUBLASLT_EPILOGUE_DEFAULT, 1);
VALUE(CUBLASLT_EPILOGUE_BIAS, 4);
VALUE(CUBLASLT_EPILOGUE_GELU, 32);
VALUE(CUBLASLT_EPILOGUE_GELU_BIAS, 36);
VALUE(CUBLASLT_EPILOGUE_GELU_AUX, 160);
VALUE(CUBLASLT_EPILOGUE_GELU_AUX_BIAS, 164);
VALUE(CUBLASLT_EPILOGUE_DGELU, 192);
VALUE(CUBLASLT_EPILOGUE_DGELU_BGRAD, 208);
VALUE(CUBLASLT_EPILOGUE_BGRADA, 256);
VALUE(CUBLASLT_EPILOGUE_BGRADB, 512);
VALUE(CUBLASLT_MATMUL_DESC_TRANSA, 3);
VALUE(CUBLASLT_MATMUL_DESC_TRANSB, 4);
VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE, 7);
VALUE(CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8);
VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, 11);
VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 12);
VALUE(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, 17);
VALUE(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, 18);
VALUE(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, 26);
VALUE(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, 22);
VALUE(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1);
VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, 5);
VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, 6);
VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, 7);
VALUE(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, 8);
VALUE(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, 3);
VALUE(CUBLASLT_REDUCTION_SCHEME_NONE, 0);
VALUE(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 5);
VALUE(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 6);
VALUE(CUBLASLT_ALGO_CONFIG_ID, 0);
VALUE(CUBLASLT_ALGO_CONFIG_TILE_ID, 1);
VALUE(CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 2);
VALUE(CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, 3);
VALUE(CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4);
VALUE(CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 5);
VALUE(CUBLASLT_ALGO_CONFIG_STAGES_ID, 6);
VALUE(CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 7);
VALUE(CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID, 8);

VALUE(ncclSuccess, 0);
VALUE(ncclUnhandledCudaError, 1);
VALUE(ncclSystemError, 2);
VALUE(ncclInternalError, 3);
VALUE(ncclInvalidArgument, 4);
VALUE(ncclInvalidUsage, 5);
VALUE(ncclRemoteError, 6);
VALUE(ncclInProgress, 7);
VALUE(ncclSum, 0);
VALUE(ncclProd, 1);
VALUE(ncclMax, 2);
VALUE(ncclMin, 3);
VALUE(ncclAvg, 4);
VALUE(ncclInt8, 0);
VALUE(ncclUint8, 1);
VALUE(ncclInt32, 2);
VALUE(ncclUint32, 3);
VALUE(ncclInt64, 4);
VALUE(ncclUint64, 5);
VALUE(ncclFloat16, 6);
VALUE(ncclFloat32, 7);
VALUE(ncclFloat64, 8);
VALUE(ncclBfloat16, 9);
VALUE(NCCL_UNIQUE_ID_BYTES, 128);
VALUE(NCCL_SPLIT_NOCOLOR, -1);

#define LAYOUT(type, bytes, alignment) \
  static_assert(sizeof(type) == (bytes) && alignof(type) == (alignment))

LAYOUT(uint3, 12, 4);
LAYOUT(dim3, 12, 4);
LAYOUT(uchar4, 4, 4);
LAYOUT(ushort2, 4, 4);
LAYOUT(ushort4, 8, 8);
LAYOUT(int2, 8, 8);
LAYOUT(int4, 16, 16);
LAYOUT(uint2, 8, 8);
LAYOUT(uint4, 16, 16);
LAYOUT(longlong2, 16, 16);
LAYOUT(ulonglong2, 16, 16);
LAYOUT(float2, 8, 8);
LAYOUT(float3, 12, 4);
LAYOUT(float4, 16, 16);
LAYOUT(double2, 16, 16);
LAYOUT(__nv_bfloat16, 2, 2);
LAYOUT(__nv_bfloat162, 4, 4);
LAYOUT(__half, 2, 2);
LAYOUT(__half2, 4, 4);
LAYOUT(cudaUUID_t, 16, 1);
LAYOUT(ncclUniqueId, 128, 1);
LAYOUT(cublasLtMatmulAlgo_t, 64, 8);

// Names the members that this program uses.
[[maybe_unused]] void use_members(cudaDeviceProp properties, cudaPointerAttributes attributes,
                                  cublasLtMatmulHeuristicResult_t choice, ncclConfig_t config) {
  static_assert(std::is_same_v<decltype(properties.name), char[256]>);
  static_assert(std::is_same_v<decltype(properties.uuid.bytes), char[16]>);
  static_assert(std::is_same_v<decltype(properties.totalGlobalMem), std::size_t>);
  static_assert(std::is_same_v<decltype(properties.sharedMemPerBlock), std::size_t>);
  static_assert(std::is_same_v<decltype(properties.sharedMemPerBlockOptin), std::size_t>);
  static_assert(std::is_same_v<decltype(properties.sharedMemPerMultiprocessor), std::size_t>);
  static_assert(std::is_same_v<decltype(properties.warpSize), int>);
  static_assert(std::is_same_v<decltype(properties.maxThreadsPerBlock), int>);
  static_assert(std::is_same_v<decltype(properties.major), int>);
  static_assert(std::is_same_v<decltype(properties.minor), int>);
  static_assert(std::is_same_v<decltype(properties.multiProcessorCount), int>);
  static_assert(std::is_same_v<decltype(properties.l2CacheSize), int>);
  static_assert(std::is_same_v<decltype(properties.memoryBusWidth), int>);
  static_assert(std::is_same_v<decltype(properties.ECCEnabled), int>);
  static_assert(std::is_same_v<decltype(properties.integrated), int>);
  static_assert(std::is_same_v<decltype(properties.pciBusID), int>);
  static_assert(std::is_same_v<decltype(properties.pciDeviceID), int>);
  static_assert(std::is_same_v<decltype(properties.pciDomainID), int>);
  static_assert(std::is_same_v<decltype(attributes.type), cudaMemoryType>);
  static_assert(std::is_same_v<decltype(attributes.device), int>);
  static_assert(std::is_same_v<decltype(attributes.devicePointer), void*>);
  static_assert(std::is_same_v<decltype(attributes.hostPointer), void*>);
  static_assert(std::is_same_v<decltype(choice.workspaceSize), std::size_t>);
  static_assert(std::is_same_v<decltype(choice.state), cublasStatus_t>);
  static_assert(std::is_same_v<decltype(config.blocking), int>);
  static_assert(std::is_same_v<decltype(config.commName), const char*>);
}

}  // namespace
}  // namespace trireme
