// Fp8Products says how the products of linear layers take their operands in 8 bits: inputs and
// weights in e4m3, gradients of outputs in e5m2. With current scaling, each operand has the scale
// that its own elements need. With delayed scaling, scales come from earlier steps, and the kernels
// note the largest magnitudes for later ones. Owned by the training engine; refers to memory that
// outlives it.
#pragma once

#include "src/kernels/kernel_arguments.h"
#include "src/nn/parameter.h"

namespace trireme {

class Fp8Products {
 public:
  // The operands of a layer's three products, each of which takes two of them.
  enum class Role : std::uint8_t { input, weight, gradient };
  static constexpr std::int64_t kRoles = 3;

  // Current scaling.
  Fp8Products() = default;
  // Delayed scaling. scales: f32 [parameters, kRoles]; 0 for operands that have a current scale.
  // most: f32 [parameters, kRoles].
  Fp8Products(ConstView scales, View most) : scales_(scales), most_(most) {}

  static constexpr Fp8Format format_of(Role role) {
    return role == Role::gradient ? Fp8Format::e5m2 : Fp8Format::e4m3;
  }
  // Returns how the layer with this weight rounds an operand.
  Fp8Operand operand(ParameterId weight, Role role) const {
    const std::int64_t place = weight * kRoles + static_cast<std::int64_t>(role);
    return {format_of(role), scales_.empty() ? ConstView() : scales_.slice(place, 1),
            most_.empty() ? View() : most_.slice(place, 1)};
  }

 private:
  ConstView scales_;
  View most_;
};

}  // namespace trireme
