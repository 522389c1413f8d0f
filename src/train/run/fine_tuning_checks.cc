#include "src/train/run/fine_tuning_checks.h"

namespace trireme {
namespace {

void check_adapters(ConfigBinder& b, const RunConfig& c) {
  if (!c.model.lora.is_on()) {
    return;
  }
  if (c.checkpoint.init_from.empty()) {
    b.refuse("lora.products",
             "adapters need the weights that they fine-tune: name their checkpoint in "
             "checkpoint.init_from, also to resume");
  }
  if (c.train.uses_fp8()) {
    b.refuse("lora.products", "adapters have no products in fp8: set train.products to precision");
  }
  if (c.optimizer.name == "muon") {
    b.refuse("lora.products", "muon is not meant for adapters: set optimizer.name to adamw or sgd");
  }
}

void check_frozen_modules(ConfigBinder& b, const RunConfig& c) {
  if (!c.model.frozen.is_on()) {
    return;
  }
  if (c.checkpoint.init_from.empty()) {
    b.refuse("train.frozen",
             "frozen modules keep the weights of another checkpoint: name it in "
             "checkpoint.init_from, also to resume");
  }
  if (c.train.uses_fp8()) {
    b.refuse("train.frozen",
             "it has not been tried with products in fp8: set train.products to "
             "precision");
  }
  if (c.optimizer.name == "muon") {
    b.refuse("train.frozen", "it has not been tried with muon: set optimizer.name to adamw or sgd");
  }
}

// A run that begins with random weights has no zeros to keep; those that LoRA begins with must
// change.
void check_kept_zeros(ConfigBinder& b, const RunConfig& c) {
  if (!c.optimizer.keep_zeros) {
    return;
  }
  if (c.model.lora.is_on()) {
    b.refuse(
        "optimizer.keep_zeros",
        "adapters begin with zeros that must change: train all weights, without lora.products");
  }
  if (c.checkpoint.init_from.empty()) {
    b.refuse("optimizer.keep_zeros",
             "random weights have no zeros to keep: name a pruned checkpoint in "
             "checkpoint.init_from, also to resume");
  }
}

}  // namespace

void check_fine_tuning(ConfigBinder& b, const RunConfig& c) {
  check_adapters(b, c);
  check_frozen_modules(b, c);
  check_kept_zeros(b, c);
}

}  // namespace trireme
