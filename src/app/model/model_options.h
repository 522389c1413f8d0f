// ModelOptions are the options of commands that compute with the model of a checkpoint: which
// weights, in which precision and on which device.
#pragma once

#include <string>

#include "src/app/access/key_choice.h"
#include "src/app/command/command_line.h"

namespace trireme {

struct ModelOptions {
  std::string checkpoint;
  std::string precision;  // empty for the precision of training
  std::string device = "auto";
  KeyChoice keys;
  std::string quantize;  // empty for none
  bool ema = false;      // the average of the weights instead of the latest

  // Returns the bits of packed weights, 0 for none.
  int packed_bits() const { return quantize == "int8" ? 8 : quantize == "int4" ? 4 : 0; }
  // Returns which weights are meant: "plain" for those of the checkpoint in the precision of
  // training, or what is different, as in "average,int8,fp32". as_trained: as in LoadedModel.
  std::string weights_words(bool as_trained) const;
  // The caller keeps the object until the command has run.
  void add_to(CommandLine& command);
};

}  // namespace trireme
