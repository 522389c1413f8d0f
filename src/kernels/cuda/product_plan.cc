#include "src/kernels/cuda/product_plan.h"

#include <array>
#include <map>
#include <mutex>
#include <vector>

#include "src/base/error.h"
#include "src/kernels/cuda/algorithm_check.h"
#include "src/kernels/cuda/scratch.h"

namespace trireme::cuda {
namespace {

// Enough for the best algorithms on Hopper, where the library's own default is as large.
constexpr std::int64_t kWorkspaceBytes = std::int64_t{32} << 20;
constexpr int kCandidates = 8;

void lt_check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw DeviceError(
        fmt::format("cuBLASLt: {} failed: {}", what, cublasLtGetStatusString(status)));
  }
}

cudaDataType_t data_type(DType dtype) {
  check(dtype == DType::f32 || dtype == DType::bf16, "products are of f32 or bf16");
  return dtype == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

cublasLtEpilogue_t epilogue_of(const ProductKind& kind) {
  switch (kind.epilogue) {
    case Epilogue::gelu:
      return kind.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_backward:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::none:
      break;
  }
  return kind.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

class Layout {
 public:
  Layout(DType dtype, std::int64_t rows, std::int64_t columns) {
    lt_check(
        cublasLtMatrixLayoutCreate(&layout_, data_type(dtype), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "creating a layout");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Preference {
 public:
  Preference() { lt_check(cublasLtMatmulPreferenceCreate(&preference_), "creating a preference"); }
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    lt_check(cublasLtMatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value),
             "setting a preference");
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

// Operation is the description of a product and the layouts of its matrices.
class Operation {
 public:
  explicit Operation(const ProductKind& kind)
      : accumulate_(kind.accumulate),
        b_(kind.type, kind.transpose_b ? kind.k : kind.n, kind.transpose_b ? kind.n : kind.k),
        a_(kind.type, kind.transpose_a ? kind.m : kind.k, kind.transpose_a ? kind.k : kind.m),
        c_(kind.c_type, kind.n, kind.m) {
    lt_check(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "creating a description");
    set(CUBLASLT_MATMUL_DESC_TRANSA, kind.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, kind.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(kind));
    if (kind.bias) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(kind.type));
    }
    if (kind.epilogue != Epilogue::none) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, kind.n);
    }
  }
  ~Operation() { cublasLtMatmulDescDestroy(description_); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // The library reads the alignment of these addresses when it chooses an algorithm.
  void set_addresses(const ProductOperands& operands) {
    if (operands.bias != nullptr) {
      set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
    }
    if (operands.aux != nullptr) {
      set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux);
    }
  }

  // Returns the algorithms that the library proposes, best first.
  std::vector<cublasLtMatmulAlgo_t> algorithms(cublasLtHandle_t handle,
                                               const ProductKind& kind) const {
    Preference preference;
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kWorkspaceBytes});
    preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                   static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                   static_cast<std::uint32_t>(kind.alignment_b));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                   static_cast<std::uint32_t>(kind.alignment_a));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                   static_cast<std::uint32_t>(kind.alignment_c));
    preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                   static_cast<std::uint32_t>(kind.alignment_c));
    std::array<cublasLtMatmulHeuristicResult_t, kCandidates> results{};
    int found = 0;
    const cublasStatus_t status =
        cublasLtMatmulAlgoGetHeuristic(handle, description_, b_.get(), a_.get(), c_.get(), c_.get(),
                                       preference.get(), kCandidates, results.data(), &found);
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i) {
      const auto& result = results[static_cast<std::size_t>(i)];
      if (result.state == CUBLAS_STATUS_SUCCESS) {
        algorithms.push_back(result.algo);
      }
    }
    return algorithms;
  }

  cublasStatus_t enqueue(cublasLtHandle_t handle, cudaStream_t stream,
                         const cublasLtMatmulAlgo_t& algorithm, const ProductOperands& operands) {
    set_addresses(operands);
    const float one = 1;
    const float beta = accumulate_ ? 1.0F : 0.0F;
    return cublasLtMatmul(handle, description_, &one, operands.b, b_.get(), operands.a, a_.get(),
                          &beta, operands.c, c_.get(), operands.c, c_.get(), &algorithm,
                          scratch(stream, kWorkspaceBytes),
                          static_cast<std::size_t>(kWorkspaceBytes), stream);
  }

 private:
  template <class T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) {
    lt_check(cublasLtMatmulDescSetAttribute(description_, attribute, &value, sizeof value),
             "describing a product");
  }

  bool accumulate_;
  Layout b_;
  Layout a_;
  Layout c_;
  cublasLtMatmulDesc_t description_ = nullptr;
};

struct ProductPlan {
  explicit ProductPlan(const ProductKind& kind) : operation(kind) {}
  Operation operation;
  bool supported = false;
  cublasLtMatmulAlgo_t algorithm{};
};

// Library holds the handle and the plans of one device.
class Library {
 public:
  Library() { lt_check(cublasLtCreate(&handle_), "starting the library"); }

  bool enqueue(cudaStream_t stream, const ProductKind& kind, const ProductOperands& operands) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<ProductPlan>& plan = plans_[kind];
    if (plan == nullptr) {
      auto fresh = std::make_unique<ProductPlan>(kind);
      choose(kind, operands, *fresh);
      plan = std::move(fresh);
    }
    if (plan->supported) {
      lt_check(plan->operation.enqueue(handle_, stream, plan->algorithm, operands), "a product");
    }
    return plan->supported;
  }

 private:
  // Takes the first algorithm that is exact. The check is a product of its own, so that it leaves
  // the operands alone.
  void choose(const ProductKind& kind, const ProductOperands& operands, ProductPlan& plan) {
    plan.operation.set_addresses(operands);
    const std::vector<cublasLtMatmulAlgo_t> algorithms = plan.operation.algorithms(handle_, kind);
    bool refused = false;
    for (const cublasLtMatmulAlgo_t& algorithm : algorithms) {
      const auto run = [&](const ProductKind& small, const ProductOperands& at) {
        Operation operation(small);
        return operation.enqueue(handle_, trials_.stream(), algorithm, at);
      };
      const AlgorithmVerdict verdict = check_algorithm(trials_, kind, run);
      if (verdict == AlgorithmVerdict::exact) {
        plan.supported = true;
        plan.algorithm = algorithm;
        return;
      }
      refused = refused || verdict == AlgorithmVerdict::wrong;
    }
    if (refused) {
      throw DeviceError(fmt::format(
          "every algorithm of cuBLASLt {} for a product of {} x {} x {} gives wrong sums: use "
          "another version of the library",
          cublasLtGetVersion(), kind.m, kind.n, kind.k));
    }
  }

  cublasLtHandle_t handle_ = nullptr;
  TrialMemory trials_;
  std::mutex mutex_;
  std::map<ProductKind, std::unique_ptr<ProductPlan>> plans_;
};

// Libraries are never destroyed: at exit, the device may be gone before static objects are.
Library& library_of(int device) {
  static std::mutex mutex;
  static auto* const libraries = new std::map<int, Library>;
  const std::lock_guard lock(mutex);
  return (*libraries)[device];
}

// Returns the largest power of two, at most 256, that divides the address.
int alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data) | 256;
  return static_cast<int>(address & (~address + 1));
}

}  // namespace

// There is an area of scratch memory for the stream of the work and one for that of the checks, and
// memory for the operands of checks, which grows at least twofold up to the largest.
std::int64_t product_workspace_bytes(std::int64_t longest_sum, std::int64_t element_bytes) {
  constexpr std::int64_t kFirstScratch = std::int64_t{2} << 20;
  constexpr std::int64_t kFirstTrials = std::int64_t{8} << 20;
  const std::int64_t operand = kCheckedSide * longest_sum * element_bytes;
  return 2 * (kFirstScratch + kWorkspaceBytes) + kFirstTrials + 4 * 2 * operand;
}

ProductKind kind_of(const Matmul& p, int device, bool with_bias, bool with_epilogue) {
  const bool bias = with_bias && !p.bias.empty();
  const bool epilogue = with_epilogue && p.epilogue != Epilogue::none;
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .type = p.a.dtype,
          .c_type = p.c.dtype,
          .transpose_a = p.transpose_a,
          .transpose_b = p.transpose_b,
          .accumulate = p.accumulate,
          .bias = bias,
          .epilogue = epilogue ? p.epilogue : Epilogue::none,
          .device = device,
          .alignment_a = alignment_of(p.a.data),
          .alignment_b = alignment_of(p.b.data),
          .alignment_c = alignment_of(p.c.data),
          .alignment_bias = bias ? alignment_of(p.bias.data) : 0,
          .alignment_aux = epilogue ? alignment_of(p.aux.data) : 0};
}

bool enqueue_product(cudaStream_t stream, const ProductKind& kind,
                     const ProductOperands& operands) {
  return library_of(kind.device).enqueue(stream, kind, operands);
}

}  // namespace trireme::cuda
