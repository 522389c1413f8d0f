#include "src/kernels/cuda/product_plan.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "src/base/error.h"
#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/algorithm_check.h"
#include "src/kernels/cuda/fp8.h"
#include "src/kernels/cuda/product_text.h"

namespace trireme::cuda {
namespace {

constexpr int kCandidates = 8;

void lt_check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) {
    return;
  }
  const auto text = fmt::format("cuBLASLt: {} failed: {}", what, cublasLtGetStatusString(status));
  if (status == CUBLAS_STATUS_ALLOC_FAILED) {
    throw_out_of_memory_in(text);
  }
  throw DeviceError(text);
}

cudaDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    default:
      break;
  }
  throw InternalError("products are of f32, bf16 or f16");
}

cudaDataType_t operand_type(DType dtype, Fp8Format format) {
  return format == Fp8Format::e4m3   ? CUDA_R_8F_E4M3
         : format == Fp8Format::e5m2 ? CUDA_R_8F_E5M2
                                     : data_type(dtype);
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
  Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t pitch) {
    lt_check(cublasLtMatrixLayoutCreate(&layout_, type, static_cast<std::uint64_t>(rows),
                                        static_cast<std::uint64_t>(columns), pitch),
             "creating a layout");
  }
  ~Layout() { cublasLtMatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  cublasLtMatrixLayout_t get() const { return layout_; }
  // Makes it a batch of matrices that are `offset` elements apart.
  void repeat(std::int32_t count, std::int64_t offset) {
    lt_check(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                              sizeof count),
             "describing a batch");
    lt_check(cublasLtMatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                              &offset, sizeof offset),
             "describing a batch");
  }

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
        b_(operand_type(kind.type, kind.b_format), kind.transpose_b ? kind.k : kind.n,
           kind.transpose_b ? kind.n : kind.k, kind.row_of_b()),
        a_(operand_type(kind.type, kind.a_format), kind.transpose_a ? kind.m : kind.k,
           kind.transpose_a ? kind.k : kind.m, kind.row_of_a()),
        c_(data_type(kind.c_type), kind.n, kind.m, kind.row_of_c()) {
    lt_check(cublasLtMatmulDescCreate(&description_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
             "creating a description");
    if (kind.parts > 1) {
      b_.repeat(kind.parts, kind.k * kind.row_of_b());
      a_.repeat(kind.parts, kind.k * kind.row_of_a());
      c_.repeat(kind.parts, kind.m * kind.row_of_c());
    }
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
    if (operands.a_scale != nullptr) {
      set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.b_scale);
      set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.a_scale);
    }
  }

  // Returns the algorithms that the library proposes, best first.
  std::vector<cublasLtMatmulAlgo_t> algorithms(cublasLtHandle_t handle,
                                               const ProductKind& kind) const {
    Preference preference;
    preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kProductWorkspaceBytes});
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
    if (status != CUBLAS_STATUS_NOT_SUPPORTED && status != CUBLAS_STATUS_INVALID_VALUE) {
      lt_check(status, "looking for algorithms");  // the other two: there is none for this product
    }
    std::vector<cublasLtMatmulAlgo_t> algorithms;
    for (int i = 0; status == CUBLAS_STATUS_SUCCESS && i < found; ++i) {
      const auto& result = results[static_cast<std::size_t>(i)];
      if (result.state == CUBLAS_STATUS_SUCCESS) {
        algorithms.push_back(result.algo);
      }
    }
    return algorithms;
  }

  cublasStatus_t enqueue(cublasLtHandle_t handle, cudaStream_t stream, Scratch& scratch,
                         const cublasLtMatmulAlgo_t& algorithm, const ProductOperands& operands) {
    set_addresses(operands);
    const float one = 1;
    const float beta = accumulate_ ? 1.0F : 0.0F;
    return cublasLtMatmul(handle, description_, &one, operands.b, b_.get(), operands.a, a_.get(),
                          &beta, operands.c, c_.get(), operands.c, c_.get(), &algorithm,
                          scratch.take(kProductScratchBytes),
                          static_cast<std::size_t>(kProductWorkspaceBytes), stream);
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

// Returns addresses for the operands at which the library looks when it chooses.
ProductOperands addresses_of(TrialMemory& memory, const ProductKind& kind) {
  memory.clear();
  char* const base = memory.take(2 * kMostAlignment);
  const auto at = [&](int alignment) { return alignment == 0 ? nullptr : base + alignment; };
  return {.bias = at(kind.alignment_bias), .aux = at(kind.alignment_aux)};
}

// Library holds the handle and the plans of one device.
class Library {
 public:
  Library() { lt_check(cublasLtCreate(&handle_), "starting the library"); }

  bool enqueue(Stream& stream, const ProductKind& kind, const ProductOperands& operands) {
    const std::lock_guard lock(mutex_);
    ProductPlan& plan = plan_of(kind);
    if (plan.supported) {
      lt_check(plan.operation.enqueue(handle_, cuda_stream(stream), cuda_scratch(stream),
                                      plan.algorithm, operands),
               "a product");
    }
    return plan.supported;
  }

  std::string choose(const ProductKind& kind) {
    const std::lock_guard lock(mutex_);
    is_closed_ = false;
    const ProductPlan& plan = plan_of(kind);
    return plan.supported ? describe(plan.algorithm) : "";
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    trials_.reset();
  }

 private:
  ProductPlan& plan_of(const ProductKind& kind) {
    std::unique_ptr<ProductPlan>& plan = plans_[kind];
    if (plan == nullptr) {
      if (is_closed_) {
        throw InternalError(fmt::format(
            "no algorithm was chosen before the first step for the product {}", describe(kind)));
      }
      if (trials_ == nullptr) {
        trials_ = std::make_unique<TrialMemory>();
      }
      auto fresh = std::make_unique<ProductPlan>(kind);
      choose(kind, *fresh);
      plan = std::move(fresh);
    }
    return *plan;
  }

  // Takes the first algorithm that is exact. The check is a product of its own, so that it leaves
  // the operands alone.
  void choose(const ProductKind& kind, ProductPlan& plan) {
    plan.operation.set_addresses(addresses_of(*trials_, kind));
    const std::vector<cublasLtMatmulAlgo_t> algorithms = plan.operation.algorithms(handle_, kind);
    bool refused = false;
    for (const cublasLtMatmulAlgo_t& algorithm : algorithms) {
      const auto run = [&](const ProductKind& small, const ProductOperands& at) {
        Operation operation(small);
        return operation.enqueue(handle_, trials_->stream(), trials_->scratch(), algorithm, at);
      };
      const AlgorithmVerdict verdict = check_algorithm(*trials_, kind, run);
      if (verdict == AlgorithmVerdict::exact) {
        plan.supported = true;
        plan.algorithm = algorithm;
        return;
      }
      refused = refused || verdict == AlgorithmVerdict::wrong;
    }
    if (refused) {
      throw DeviceError(fmt::format(
          "every algorithm of cuBLASLt {} for the product {} gives wrong sums: use another version "
          "of the library",
          cublasLtGetVersion(), describe(kind)));
    }
  }

  cublasLtHandle_t handle_ = nullptr;
  std::mutex mutex_;                     // guards the members below
  std::unique_ptr<TrialMemory> trials_;  // null unless an algorithm was chosen since close()
  bool is_closed_ = false;
  std::map<ProductKind, std::unique_ptr<ProductPlan>> plans_;
};

// Libraries are never destroyed: at exit, the device may be gone before static objects are.
Library& library_of(int device) {
  static std::mutex mutex;
  static auto* const libraries = new std::map<int, Library>;
  const std::lock_guard lock(mutex);
  return (*libraries)[device];
}

// Returns the largest power of two, at most kMostAlignment, that divides the address.
int alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data) | kMostAlignment;
  return static_cast<int>(address & (~address + 1));
}

}  // namespace

// Scratch memory of the stream of the work, whose first areas are small. Products in fp8 and
// cuDNN's attention may need more. Where sizes vary, all areas together take less than four times
// as much as the largest.
std::int64_t scratch_bytes(std::int64_t fp8_bytes, std::int64_t attention_bytes) {
  constexpr std::int64_t kFirstScratch = std::int64_t{2} << 20;
  if (fp8_bytes > 0) {
    return 4 * std::max(kProductScratchBytes + kFp8NoteBytes + fp8_bytes, attention_bytes);
  }
  const bool grows = attention_bytes > kProductScratchBytes;
  return kFirstScratch + kProductScratchBytes +
         (grows ? std::max(attention_bytes, 2 * kProductScratchBytes) : 0);
}

// Scratch memory of the stream of the checks, and memory for their operands. That grows at least
// twofold, so that the newest area is at most twice as large as needed, and all together at most
// four times.
std::int64_t product_choice_bytes(std::int64_t longest_sum, std::int64_t element_bytes) {
  constexpr std::int64_t kRounding = std::int64_t{4} << 20;  // two areas, to 2 MiB each
  constexpr std::int64_t kResults =
      4 * kCheckedSide * (kCheckedSide + kRowMultiple) * std::int64_t{sizeof(float)};
  const std::int64_t needed =
      kResults + 2 * (kCheckedSide + kRowMultiple) * longest_sum * element_bytes;
  return kProductScratchBytes + kRounding +
         (needed <= kFirstTrialBytes ? kFirstTrialBytes : 4 * needed);
}

int parts_of(const Matmul& p) {
  constexpr std::int64_t kTile = 128;         // rows and columns of a common tile
  constexpr std::int64_t kLeastTerms = 1024;  // of a part
  const bool is_gradient = p.transpose_a && !p.transpose_b && p.c.dtype == DType::f32 &&
                           p.a.dtype != DType::f32 && p.bias.empty() && p.pitch_c == 0 &&
                           p.epilogue == Epilogue::none && p.fp8_a.format == Fp8Format::none;
  const std::int64_t tiles = (p.m + kTile - 1) / kTile * ((p.n + kTile - 1) / kTile);
  const int parts = tiles <= 44 ? 4 : (tiles <= 72 ? 2 : 1);  // for 132 multiprocessors
  const bool fits = p.m * p.n * parts * std::int64_t{sizeof(float)} <= kProductPartBytes;
  return is_gradient && fits && p.k % (parts * 64) == 0 && p.k / parts >= kLeastTerms ? parts : 1;
}

ProductKind kind_of(const Matmul& p, int device, bool with_bias, bool with_epilogue) {
  const bool bias = with_bias && !p.bias.empty();
  const bool epilogue = with_epilogue && p.epilogue != Epilogue::none;
  return {.m = p.m,
          .n = p.n,
          .k = p.k,
          .type = p.a.dtype,
          .a_format = p.fp8_a.format,
          .b_format = p.fp8_b.format,
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
          .alignment_aux = epilogue ? alignment_of(p.aux.data) : 0,
          .pitch_a = p.pitch_a,
          .pitch_b = p.pitch_b,
          .pitch_c = p.pitch_c,
          .parts = 1};
}

bool enqueue_product(Stream& stream, const ProductKind& kind, const ProductOperands& operands) {
  return library_of(kind.device).enqueue(stream, kind, operands);
}

std::string choose_algorithm(const ProductKind& kind) {
  use_device(kind.device);
  return library_of(kind.device).choose(kind);
}

void close_choices(int device) {
  use_device(device);
  library_of(device).close();
}

}  // namespace trireme::cuda
