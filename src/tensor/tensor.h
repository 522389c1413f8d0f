// Tensor is a value with a shape, a type and storage, dense and row-major. Copies share the
// storage; the last owner returns it to its pool.
#pragma once

#include <memory>

#include "src/device/pool.h"
#include "src/tensor/shape.h"

namespace trireme {

class Tensor {
 public:
  Tensor() = default;
  // Allocates storage without initializing it.
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

 private:
  Shape shape_;
  DType dtype_ = DType::f32;
  std::shared_ptr<Buffer> storage_;
};

}  // namespace trireme
