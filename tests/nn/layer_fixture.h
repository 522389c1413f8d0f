// LayerFixture is shared by the tests of single layers: a few parameters with chosen values, their
// gradients, and a Run. It computes with the reference kernels in f32.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/compute/kernel_choice.h"
#include "src/nn/gradient_sink.h"
#include "src/nn/run.h"
#include "src/tensor/tensor.h"

namespace trireme {

using Floats = std::vector<float>;

inline Floats values_of(const ConstView& view) {
  const auto* x = as<float>(view);
  return Floats(x, x + view.count);
}
inline Floats values_of(const Tensor& tensor) { return values_of(tensor.view()); }

class LayerFixture {
 public:
  enum class Kind { trained, joined, frozen };
  // Declares a parameter. Call it before begin().
  ParameterId add(const std::string& name, const Shape& shape, Floats values,
                  Kind kind = Kind::trained) {
    Parameter parameter;
    parameter.name = name;
    parameter.place = Place::all(shape);
    parameter.joined = kind == Kind::joined;
    parameter.frozen = kind == Kind::frozen;
    parameter.trained = !parameter.frozen;
    values_.push_back(std::move(values));
    return store.add(std::move(parameter));
  }
  // Gives all parameters their values, and all gradients the value 1000.
  void begin() {
    store.allocate();
    for (ParameterId id = 0; id < store.count(); ++id) {
      const Floats& values = values_[static_cast<std::size_t>(id)];
      std::copy(values.begin(), values.end(), as<float>(store.compute(id)));
    }
    flat_.assign(static_cast<std::size_t>(store.flat_elements()), 1000);
    sink_ = std::make_unique<FlatGradients>(store,
                                            View{flat_.data(), store.flat_elements(), DType::f32},
                                            [this](ParameterId id) { announced.push_back(id); });
    run.gradients = sink_.get();
  }
  Floats gradient(ParameterId id) { return values_of(sink_->gradient(id, 1)); }
  Tensor tensor(const Shape& shape, const Floats& values) {
    Tensor tensor(context.activations(), shape, DType::f32);
    std::copy(values.begin(), values.end(), as<float>(tensor.view()));
    return tensor;
  }

  DeviceContext context{kernels_named("reference"), 1};
  ParameterStore store{context, DType::f32};
  Run run{context, store};
  std::vector<ParameterId> announced;  // parameters whose gradients became final, in this order

 private:
  std::vector<Floats> values_;
  Floats flat_;
  std::unique_ptr<FlatGradients> sink_;
};

}  // namespace trireme
