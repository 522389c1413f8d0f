#include "src/kernels/cuda/algorithm_check.h"

#include <algorithm>

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_counts.h"
#include "src/kernels/cuda/outcome.h"
#include "src/kernels/cuda/product_kernels.h"

namespace trireme::cuda {
namespace {

// GELU's slope is 1 here, to all bits.
constexpr float kWhereGeluIsLinear = 20;
// If only the end of a sum is checked, it ends with this many ones.
constexpr std::int64_t kEnd = 64;

// Takes a matrix or vector with as poor an alignment as the operand's.
View take(TrialMemory& memory, std::int64_t count, DType dtype, int alignment, int device) {
  char* const data = memory.take(count * size_of(dtype) + 256);
  return {data + alignment % 256, count, dtype, {DeviceKind::cuda, device}};
}

// Trial is a product on operands of its own.
class Trial {
 public:
  Trial(TrialMemory& memory, const ProductKind& kind)
      : memory_(memory),
        kind_(kind),
        a_(take(memory, kind.parts * rows_of_a() * kind.row_of_a(),
                operand_type(kind, kind.a_format), kind.alignment_a, kind.device)),
        b_(take(memory, kind.parts * rows_of_b() * kind.row_of_b(),
                operand_type(kind, kind.b_format), kind.alignment_b, kind.device)),
        scale_(take(memory, 1, DType::f32, 256, kind.device)),
        c_(take(memory, kind.parts * kind.m * kind.row_of_c(), kind.c_type, kind.alignment_c,
                kind.device)),
        bias_(take(memory, kind.n, kind.type, kind.alignment_bias, kind.device)),
        aux_(take(memory, kind.m * kind.n, kind.type, kind.alignment_aux, kind.device)) {}

  // Computes sums of which the terms from `first` on are 1, and the others 0.
  AlgorithmVerdict run(const ProductRun& product, std::int64_t first) {
    const bool backward = kind_.epilogue == Epilogue::gelu_backward;
    fill_ones_from(
        memory_.stream(), a_, kind_.a_format,
        {.row = kind_.row_of_a(), .k = kind_.k, .k_is_inner = !kind_.transpose_a, .first = 0});
    fill_ones_from(
        memory_.stream(), b_, kind_.b_format,
        {.row = kind_.row_of_b(), .k = kind_.k, .k_is_inner = kind_.transpose_b, .first = first});
    fill_with(memory_.stream(), scale_, 1);
    fill_with(memory_.stream(), c_, 0);
    fill_with(memory_.stream(), bias_, 0);
    fill_with(memory_.stream(), aux_, backward ? kWhereGeluIsLinear : 0);
    const cublasStatus_t status =
        product(kind_, {.a = a_.data,
                        .b = b_.data,
                        .c = c_.data,
                        .bias = kind_.bias ? bias_.data : nullptr,
                        .aux = kind_.epilogue == Epilogue::none ? nullptr : aux_.data,
                        .a_scale = scale_of(kind_.a_format),
                        .b_scale = scale_of(kind_.b_format)});
    if (status == CUBLAS_STATUS_ALLOC_FAILED) {
      throw_out_of_memory_in("cuBLASLt found no memory for a product");
    }
    if (status != CUBLAS_STATUS_SUCCESS) {
      require(cudaStreamSynchronize(memory_.stream()), "a product failed");  // the device's fault
      return AlgorithmVerdict::unsupported;
    }
    const float sum = static_cast<float>(kind_.k - first);
    return all_are(sum) ? AlgorithmVerdict::exact : AlgorithmVerdict::wrong;
  }

 private:
  std::int64_t rows_of_a() const { return kind_.transpose_a ? kind_.k : kind_.m; }
  std::int64_t rows_of_b() const { return kind_.transpose_b ? kind_.n : kind_.k; }
  static DType operand_type(const ProductKind& kind, Fp8Format format) {
    return format == Fp8Format::none ? kind.type : DType::u8;
  }
  const float* scale_of(Fp8Format format) const {
    return format == Fp8Format::none ? nullptr : static_cast<const float*>(scale_.data);
  }
  // Returns whether all sums have that value, and what lies between rows is still 0; with GELU, the
  // sums are in aux.
  bool all_are(float sum) {
    const View result = kind_.epilogue == Epilogue::gelu ? aux_ : c_;
    void* const copy = memory_.pinned(result.bytes());
    require(cudaMemcpyAsync(copy, result.data, static_cast<std::size_t>(result.bytes()),
                            cudaMemcpyDeviceToHost, memory_.stream()),
            "cannot read a product");
    require(cudaStreamSynchronize(memory_.stream()), "a product failed");
    const std::int64_t pitch = result.count / (kind_.parts * kind_.m);
    if (result.dtype != DType::f32) {
      const std::uint16_t bits = result.dtype == DType::bf16 ? to_bf16(sum).bits : to_f16(sum).bits;
      return holds(static_cast<const std::uint16_t*>(copy), pitch, bits);
    }
    return holds(static_cast<const float*>(copy), pitch, sum);
  }
  template <class T>
  bool holds(const T* sums, std::int64_t pitch, T value) const {
    for (std::int64_t i = 0; i < kind_.parts * kind_.m; ++i) {
      const T* const row = sums + i * pitch;
      if (std::count(row, row + kind_.n, value) != kind_.n ||
          std::count(row + kind_.n, row + pitch, T{}) != pitch - kind_.n) {
        return false;
      }
    }
    return true;
  }

  TrialMemory& memory_;
  ProductKind kind_;
  View a_;
  View b_;
  View scale_;
  View c_;
  View bias_;
  View aux_;
};

AlgorithmVerdict check_kind(TrialMemory& memory, const ProductKind& kind,
                            const ProductRun& product) {
  memory.clear();
  Trial trial(memory, kind);
  const AlgorithmVerdict whole = trial.run(product, 0);
  if (whole != AlgorithmVerdict::exact || kind.k <= kEnd) {
    return whole;
  }
  return trial.run(product, kind.k - kEnd);
}

}  // namespace

TrialMemory::TrialMemory() {
  require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
          "cannot make a stream to check algorithms for products");
}

TrialMemory::~TrialMemory() {
  (void)cudaStreamSynchronize(stream_);
  (void)cudaStreamDestroy(stream_);
  for (char* const area : areas_) {
    (void)cudaFree(area);
  }
  for (void* const area : pinned_) {
    (void)cudaFreeHost(area);
  }
}

char* TrialMemory::take(std::int64_t bytes) {
  constexpr std::int64_t kAlignment = 256;
  const std::int64_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (used_ + whole > bytes_) {
    bytes_ = std::max({whole, 2 * bytes_, kFirstTrialBytes});
    used_ = 0;
    count_allocation();
    void* data = nullptr;
    const cudaError_t outcome = cudaMalloc(&data, static_cast<std::size_t>(bytes_));
    if (outcome == cudaErrorMemoryAllocation) {
      throw_out_of_device_memory(bytes_);
    }
    cuda_check(outcome, "cudaMalloc");
    areas_.push_back(static_cast<char*>(data));
  }
  used_ += whole;
  return areas_.back() + used_ - whole;
}

void* TrialMemory::pinned(std::int64_t bytes) {
  if (bytes > pinned_bytes_) {
    count_allocation();
    void* data = nullptr;
    const cudaError_t error = cudaMallocHost(&data, static_cast<std::size_t>(bytes));
    if (error == cudaErrorMemoryAllocation) {
      throw_out_of_pinned_memory(bytes);
    }
    cuda_check(error, "cudaMallocHost");
    pinned_.push_back(data);
    pinned_bytes_ = bytes;
  }
  return pinned_.back();
}

AlgorithmVerdict check_algorithm(TrialMemory& memory, const ProductKind& kind,
                                 const ProductRun& product) {
  ProductKind small = kind;
  small.m = std::min(kind.m, kCheckedSide);
  small.n = std::min(kind.n, kCheckedSide);
  // Pads rows wherever the whole product's rows are padded.
  small.pitch_a = small.pitch_b = small.pitch_c = 0;
  small.pitch_a = kind.pitch_a > 0 ? aligned_row(small.row_of_a() + 1) : 0;
  small.pitch_b = kind.pitch_b > 0 ? aligned_row(small.row_of_b() + 1) : 0;
  small.pitch_c = kind.pitch_c > 0 ? aligned_row(small.row_of_c() + 1) : 0;
  const AlgorithmVerdict verdict = check_kind(memory, small, product);
  // The library may permit an algorithm for the whole product alone.
  return verdict == AlgorithmVerdict::unsupported && small != kind
             ? check_kind(memory, kind, product)
             : verdict;
}

}  // namespace trireme::cuda
