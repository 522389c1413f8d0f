// AdapterWeights holds the adapters of one checkpoint in memory, in PEFT's layout, and adds them to
// the weights that they were trained beside. Any thread may read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "io/checkpoint/store.h"
#include "src/nn/model_config.h"
#include "src/nn/model_tensors.h"
#include "src/train/engine/training_state.h"

namespace trireme {

class AdapterWeights {
 public:
  struct Adapter {
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::vector<float> a;  // [rank, in]
    std::vector<float> b;  // [out, rank]
  };

  // step: whole, with its key if it is encrypted. model: the one that the step describes. Throws
  // DataError if its tensors are not the model's adapters, for damage, and for elements that are
  // not finite numbers.
  AdapterWeights(const StepFolder& step, const ModelConfig& model, Weights which);

  const ModelConfig& model() const { return model_; }
  // By module, such as model.layers.0.self_attn.q_proj.
  const std::map<std::string, Adapter>& all() const { return adapters_; }
  // Adds scale B A to the row-major elements [first, first + count) of a weight, if it has an
  // adapter. A weight of GPT-2 is stored as its transpose.
  void add_to(const ModelTensor& weight, std::int64_t first, std::int64_t count, float* to) const;

 private:
  ModelConfig model_;
  std::map<std::string, Adapter> adapters_;
};

}  // namespace trireme
