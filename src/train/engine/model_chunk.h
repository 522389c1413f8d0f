// ModelChunk is one virtual stage on a rank: its slice of the model, the parameters, and their
// training state. Owned by Engine; used by its thread.
#pragma once

#include <memory>
#include <vector>

#include "src/nn/model.h"
#include "src/parallel/zero_state.h"

namespace trireme {

struct ModelChunk {
  ParameterStore parameters;
  Model model;
  ZeroState state;

  // state_options.borders is replaced by the model's borders. What the tools refer to outlives the
  // chunk.
  ModelChunk(const ModelConfig& config, const ModelSlice& slice, DType compute,
             const ZeroTools& tools, ZeroState::Options state_options)
      : parameters(tools.context, compute),
        model(config, slice, parameters),
        state(parameters, tools, with_borders(std::move(state_options), model)) {}
  ModelChunk(const ModelChunk&) = delete;
  ModelChunk& operator=(const ModelChunk&) = delete;

 private:
  static ZeroState::Options with_borders(ZeroState::Options options, const Model& model) {
    options.borders = model.parameter_borders();
    return options;
  }
};

// The chunks of one rank, in the order of the model.
using ModelChunks = std::vector<std::unique_ptr<ModelChunk>>;

}  // namespace trireme
