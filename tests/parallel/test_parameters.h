// Declares parameters with sizes as irregular as a model's, and a kernel table that can only sum
// them.
#pragma once

#include <memory>
#include <vector>

#include "src/base/error.h"
#include "src/parallel/zero_layout.h"

namespace trireme {

// Declares the vectors p0, p1, ...
inline std::unique_ptr<ParameterStore> declare_parameters(DeviceContext& context,
                                                          const std::vector<std::int64_t>& sizes,
                                                          DType compute = DType::f32) {
  auto store = std::make_unique<ParameterStore>(context, compute);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    Parameter parameter;
    parameter.name = fmt::format("p{}", i);
    parameter.place = Place::all({sizes[i]});
    store->add(std::move(parameter));
  }
  return store;
}

inline Kernels adding_kernels() {
  Kernels kernels{};
  kernels.add = [](Stream&, View y, ConstView x) {
    for (std::int64_t i = 0; i < y.count; ++i) {
      as<float>(y)[i] += as<float>(x)[i];
    }
  };
  kernels.add_chain = [](Stream&, View y, const ConstView* x, int n) {
    for (std::int64_t i = 0; i < y.count; ++i) {
      float sum = as<float>(x[n - 1])[i];
      for (int j = n - 2; j >= 0; --j) {
        sum += as<float>(x[j])[i];
      }
      as<float>(y)[i] += sum;
    }
  };
  kernels.cast = [](Stream&, View y, ConstView x) {
    std::copy(as<float>(x), as<float>(x) + x.count, as<float>(y));
  };
  kernels.fill = [](Stream&, View y, float value) {
    std::fill(as<float>(y), as<float>(y) + y.count, value);
  };
  return kernels;
}

}  // namespace trireme
