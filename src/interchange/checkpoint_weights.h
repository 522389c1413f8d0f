// CheckpointWeights reads the weights of one checkpoint, a part of a tensor at a time. Every byte
// that is read was compared with its digest, and decrypted if the checkpoint is encrypted. Of a
// checkpoint of adapters, it reads the weights that they fine-tune, and adds them; frozen weights
// are read from where they are stored. One thread.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/load/checkpoint_loader.h"
#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "mpi/self_communicator.h"
#include "src/interchange/adapter_weights.h"
#include "src/nn/model_tensors.h"
#include "src/train/engine/training_state.h"

namespace trireme {

class CheckpointWeights {
 public:
  // step: whole, with its key if it is encrypted; so is `base`, which is needed if the step does
  // not hold all weights (open_base). Throws DataError if their tensors are not those of the model
  // that they describe, and ConfigError if the step has no average of the weights.
  CheckpointWeights(StepFolder step, Weights which, std::optional<StepFolder> base = {});
  CheckpointWeights(const CheckpointWeights&) = delete;
  CheckpointWeights& operator=(const CheckpointWeights&) = delete;

  const StepFolder& step() const { return step_; }
  // Returns the step that holds the weights: the base, or the same step.
  const StepFolder& origin() const { return base_ == nullptr ? step_ : base_->step(); }
  // Returns the base, or null if the step holds all weights.
  const StepFolder* base() const { return base_ == nullptr ? nullptr : &base_->step(); }
  // Without adapters and frozen modules: the weights are all there.
  const ModelConfig& model() const { return model_; }
  // Sorted bytewise by name.
  const std::vector<ModelTensor>& tensors() const { return tensors_; }
  // Reads the row-major elements [first, first + count) of one of these tensors. Throws DataError
  // for damage, and for elements that are not finite numbers.
  void read(const ModelTensor& tensor, std::int64_t first, std::int64_t count, float* to);
  // Returns all elements of the tensor of that name.
  std::vector<float> read(const std::string& name);

 private:
  void read_config(Weights which);
  void check_tensors() const;

  StepFolder step_;
  std::string prefix_;  // before the names of the wanted weights
  ModelConfig model_;
  std::vector<ModelTensor> tensors_;
  SelfCommunicator self_;
  FrozenModules frozen_;                      // whose weights are in base_
  std::unique_ptr<CheckpointLoader> loader_;  // null if there are adapters
  std::unique_ptr<CheckpointWeights> base_;   // null if the step holds all weights
  std::unique_ptr<AdapterWeights> adapters_;  // null if there are none
};

// Returns the base of a step that needs one, with its key; nothing for others. The errors
// are those of recorded_base() and unlock().
std::optional<StepFolder> open_base(const StepFolder& step, const KeyOptions& keys);

}  // namespace trireme
