// Lists the modules of a model with their sizes: the parts that Hugging Face's names of parameters
// consist of, such as model.layers.0.mlp.up_proj, which holds a matrix and perhaps a bias. Pure
// functions; no model is declared for them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/nn/model_config.h"

namespace trireme {

struct ModuleSize {
  std::string name;
  std::int64_t elements = 0;  // of all its parameters
};

struct ModuleSizes {
  std::vector<ModuleSize> before;     // the embeddings
  std::string blocks;                 // "model.layers": their modules are blocks.NUMBER.NAME
  std::vector<ModuleSize> attention;  // of one block: its norm and its projections
  std::vector<ModuleSize> mlp;        // of one block: its norm and its projections
  std::vector<ModuleSize> after;      // the final norm, and the output matrix unless it is tied
};

// config: complete and valid.
ModuleSizes module_sizes(const ModelConfig& config);

}  // namespace trireme
