#include "src/train/start/run_keys.h"

namespace trireme {

std::unique_ptr<StepKeys> keys_of(const EncryptionConfig& config, Communicator& world) {
  if (config.keys.empty()) {
    return nullptr;
  }
  auto keys = std::make_unique<StepKeys>(
      world, KeyOptions{config.keys, config.accept_plain, config.accept_plain_data});
  keys->prepare_to_save();
  return keys;
}

}  // namespace trireme
