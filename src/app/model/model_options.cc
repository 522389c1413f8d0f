#include "src/app/model/model_options.h"

#include "src/compute/device_choice.h"
#include "src/train/run/run_config.h"

namespace trireme {

std::string ModelOptions::weights_words(bool as_trained) const {
  std::string words;
  for (const std::string& word :
       {std::string(ema ? "average" : ""), quantize, as_trained ? std::string() : precision}) {
    words += words.empty() || word.empty() ? word : "," + word;
  }
  return words.empty() ? "plain" : words;
}

void ModelOptions::add_to(CommandLine& command) {
  command
      .add_option("--checkpoint", checkpoint,
                  "A checkpoint, or a folder of checkpoints: then its newest valid one")
      .required()
      .type_name("DIR");
  command
      .add_option("--precision", precision,
                  "Precision of the products and activations; fp16 needs a GPU (default: as in "
                  "training, but fp32 instead of fp16 on the CPU)")
      .check(one_of({kPrecisions.begin(), kPrecisions.end()}));
  command
      .add_option("--quantize", quantize,
                  "Keep the matrices in 8 or 4 bits, which is faster on the CPU and takes less "
                  "memory; needs the CPU")
      .check(one_of({"int8", "int4"}));
  command.add_option("--device", device, "Where to compute; auto: on a GPU if there is one")
      .check(one_of(device_words()));
  keys.add_to(command);
  command.add_flag("--ema", ema,
                   "Use the moving average of the weights that optimizer.ema has kept");
}

}  // namespace trireme
