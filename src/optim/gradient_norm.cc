#include "src/optim/gradient_norm.h"

#include <algorithm>
#include <cmath>

namespace trireme {

double gradient_norm(const ParameterStore& store, const ConstView& gradients,
                     const Kernels& kernels, Stream& stream) {
  double sum = 0;
  for (const ParameterId id : store.ids_by_name()) {
    double squares = 0;
    kernels.sum_of_squares(stream, &squares,
                           gradients.slice(store[id].offset, store[id].elements()));
    sum += squares;
  }
  return std::sqrt(sum);
}

double clip_factor(double norm, double max_norm) {
  return max_norm > 0 ? std::min(1.0, max_norm / (norm + 1e-6)) : 1.0;
}

}  // namespace trireme
