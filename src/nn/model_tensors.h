// Lists the tensors of a model with their shapes, as the model itself declares them.
#pragma once

#include <string>
#include <vector>

#include "src/nn/model_config.h"
#include "src/tensor/shape.h"

namespace trireme {

struct ModelTensor {
  std::string name;
  Shape shape;
  bool is_frozen = false;  // whether it is a weight that adapters are trained beside
  friend bool operator==(const ModelTensor&, const ModelTensor&) = default;
};

// config: complete and valid, and of a model whose size is known to be sensible, because this takes
// memory for every layer. Sorted bytewise by name.
std::vector<ModelTensor> model_tensors(const ModelConfig& config);

}  // namespace trireme
