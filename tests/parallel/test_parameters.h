// Parameters with sizes as odd as a model's, and just enough of a kernel table to sum them.
#pragma once

#include <memory>
#include <vector>

#include "src/kernels/kernels.h"
#include "src/nn/parameter.h"

namespace trireme {

inline std::unique_ptr<ParameterStore> make_parameters(Pool& pool,
                                                       const std::vector<std::int64_t>& sizes) {
  auto store = std::make_unique<ParameterStore>(pool, DType::f32);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Parameter parameter;
    parameter.name = fmt::format("p{}", i);
    parameter.place = Place::all({sizes[i]});
    store->add(std::move(parameter));
  }
  store->allocate();
  return store;
}

inline Kernels adding_kernels() {
  Kernels kernels{};
  kernels.add = [](Stream&, View y, ConstView x) {
    for (std::int64_t i = 0; i < y.count; ++i) {
      as<float>(y)[i] += as<float>(x)[i];
    }
  };
  kernels.fill = [](Stream&, View y, float value) {
    std::fill(as<float>(y), as<float>(y) + y.count, value);
  };
  return kernels;
}

}  // namespace trireme
