// Checks an algorithm of the product library with sums that are exact in every type: products of
// ones, and of ones whose sum has ones at its end only, so that a lost end cannot be rounded away.
#pragma once

#include <functional>
#include <vector>

#include "src/device/cuda/scratch.h"
#include "src/kernels/cuda/product_plan.h"

namespace trireme::cuda {

enum class AlgorithmVerdict {
  exact,
  wrong,
  unsupported,  // the library refuses the product
};

// TrialMemory holds the stream and the memory of checks. They are not those of the work around
// them, for which a check does not wait: that work may wait for another rank, which waits for this
// one. Memory that has become too small is freed only at the end, because freeing waits for the
// whole device. Belongs to the device that was the constructing thread's; one thread at a time.
inline constexpr std::int64_t kFirstTrialBytes = std::int64_t{4} << 20;
class TrialMemory {
 public:
  TrialMemory();
  ~TrialMemory();
  TrialMemory(const TrialMemory&) = delete;
  TrialMemory& operator=(const TrialMemory&) = delete;

  cudaStream_t stream() const { return stream_; }
  Scratch& scratch() { return scratch_; }
  // Ends the use of everything that was taken.
  void clear() { used_ = 0; }
  // Returns device memory, aligned to 256 bytes.
  char* take(std::int64_t bytes);
  // Returns host memory that the device can write to, until the next call.
  void* pinned(std::int64_t bytes);

 private:
  cudaStream_t stream_ = nullptr;
  Scratch scratch_;
  std::vector<char*> areas_;
  std::int64_t bytes_ = 0;  // of the newest area, as used_ is
  std::int64_t used_ = 0;
  std::vector<void*> pinned_;
  std::int64_t pinned_bytes_ = 0;
};

// Enqueues a product of that kind on those operands, on the stream of the check.
using ProductRun = std::function<cublasStatus_t(const ProductKind&, const ProductOperands&)>;

// Checks the algorithm behind `product` on products with the kind's k, types, transposes,
// alignments and epilogue, and with at most kCheckedSide rows and columns. Waits for the result.
inline constexpr std::int64_t kCheckedSide = 256;
AlgorithmVerdict check_algorithm(TrialMemory& memory, const ProductKind& kind,
                                 const ProductRun& product);

}  // namespace trireme::cuda
