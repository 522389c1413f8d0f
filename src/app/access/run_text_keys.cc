#include "src/app/access/run_text_keys.h"

#include "mpi/agreement.h"
#include "src/base/check.h"
#include "src/keys/log_keys.h"

namespace trireme {

RunTextKeys::RunTextKeys(const RunConfig& config, StepKeys* keys, Communicator& world, Log& log) {
  if (!config.encryption.logs) {
    return;
  }
  check(keys != nullptr, "encryption.logs needs encryption.keys");
  const std::shared_ptr<const FolderKey> key = keys->log_key();
  how_.sealer = std::make_shared<const LogSealer>(config.run_dir,
                                                  std::shared_ptr<const DataKey>(key, &key->key));
  reader_ = std::make_unique<const KeyedTextReader>(keys->shared().ring());
  how_.reader = reader_.get();
  const std::string were_plain =
      run_on_root(world, [&] { return begin_encrypted_files(config.run_dir, *key, *how_.sealer); });
  log.write_encrypted(how_.sealer);
  if (!were_plain.empty() && world.rank() == 0) {
    log.warning(were_plain);
  }
}

}  // namespace trireme
