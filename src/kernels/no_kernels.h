// Declares the kernel table of DeviceKind::counting. Every entry returns at once and touches
// nothing, so that a step takes the memory of a real one without its arithmetic. Read-only.
#pragma once

#include <cstdint>
#include <vector>

#include "src/kernels/kernels.h"

namespace trireme {

const Kernels& no_kernels();

// ProductRecording collects the different products and calls of attention that the calling thread
// asks of this table while it lives. Operands that start at equal offsets within
// kRecordedAlignment bytes count as equal. One per thread at a time.
inline constexpr std::int64_t kRecordedAlignment = 16;
class ProductRecording {
 public:
  ProductRecording();
  ~ProductRecording();
  ProductRecording(const ProductRecording&) = delete;
  ProductRecording& operator=(const ProductRecording&) = delete;

  void note(const Matmul& product);
  void note(const AttentionForward& call, bool backward);
  // Return the calls in the order of their first use. Their views must not be read.
  const std::vector<Matmul>& products() const { return products_; }
  // Returns the forward passes, or those whose gradient is asked for.
  const std::vector<AttentionForward>& attention(bool backward) const {
    return backward ? gradients_ : forwards_;
  }

 private:
  std::vector<Matmul> products_;
  std::vector<AttentionForward> forwards_;
  std::vector<AttentionForward> gradients_;
};

}  // namespace trireme
