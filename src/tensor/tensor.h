// Tensor: a value of shape, type and storage. Copying shares the storage; the last owner gives it
// back to its pool. Row-major and dense.
#pragma once

#include <memory>

#include "src/device/pool.h"
#include "src/tensor/shape.h"

namespace trireme {

class Tensor {
 public:
  Tensor() = default;
  // Uninitialized elements.
  Tensor(Pool& pool, const Shape& shape, DType dtype)
      : shape_(shape),
        dtype_(dtype),
        storage_(std::make_shared<Buffer>(pool.allocate(shape.elements() * size_of(dtype)))) {}

  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  std::int64_t elements() const { return shape_.elements(); }
  bool empty() const { return storage_ == nullptr; }
  View view() const {
    return storage_ == nullptr ? View{}
                               : View{storage_->data(), elements(), dtype_, storage_->device()};
  }
  // The same storage under another shape of as many elements.
  Tensor reshaped(const Shape& shape) const {
    check(shape.elements() == elements(), "a reshape keeps the number of elements");
    Tensor other = *this;
    other.shape_ = shape;
    return other;
  }

 private:
  Shape shape_;
  DType dtype_ = DType::f32;
  std::shared_ptr<Buffer> storage_;
};

}  // namespace trireme
