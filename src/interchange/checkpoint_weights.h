// CheckpointWeights reads the weights of one checkpoint, a part of a tensor at a time. Every byte
// that is read was compared with its digest, and decrypted if the checkpoint is encrypted. One
// thread.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/load/checkpoint_loader.h"
#include "io/checkpoint/store.h"
#include "mpi/self_communicator.h"
#include "src/interchange/model_tensors.h"
#include "src/train/engine/training_state.h"

namespace trireme {

class CheckpointWeights {
 public:
  // step: whole, with its key if it is encrypted. Throws DataError if its tensors are not those of
  // the model that it describes, and ConfigError if it has no average of the weights.
  CheckpointWeights(StepFolder step, Weights which);
  CheckpointWeights(const CheckpointWeights&) = delete;
  CheckpointWeights& operator=(const CheckpointWeights&) = delete;

  const StepFolder& step() const { return step_; }
  const ModelConfig& model() const { return model_; }
  // Sorted bytewise by name.
  const std::vector<ModelTensor>& tensors() const { return tensors_; }
  // Reads the row-major elements [first, first + count) of one of these tensors. Throws DataError
  // for damage, and for elements that are not finite numbers.
  void read(const ModelTensor& tensor, std::int64_t first, std::int64_t count, float* to);
  // Returns all elements of the tensor of that name.
  std::vector<float> read(const std::string& name);

 private:
  void check_tensors() const;

  StepFolder step_;
  std::string prefix_;  // before the names of the wanted weights
  ModelConfig model_;
  std::vector<ModelTensor> tensors_;
  SelfCommunicator self_;
  std::unique_ptr<CheckpointLoader> loader_;
};

}  // namespace trireme
