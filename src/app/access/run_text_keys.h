// RunTextKeys holds what a run needs to write and read its logs, metrics and traces: with
// encryption.logs, the key of this start and those of earlier ones. Owned by the command; used by
// the main thread. It outlives all who use how().
#pragma once

#include <memory>

#include "io/checkpoint/step_keys.h"
#include "src/base/log.h"
#include "src/base/run_text.h"
#include "src/keys/keyed_text_reader.h"
#include "src/train/run/run_config.h"

namespace trireme {

class RunTextKeys {
 public:
  // Collective. With encryption.logs, rank 0 stores the wrapped key of this start in the run's
  // folder, and encrypts what earlier starts have written in plain; then `log` writes its file.
  // keys: null without encryption.keys; outlives this object.
  RunTextKeys(const RunConfig& config, StepKeys* keys, Communicator& world, Log& log);

  const RunText& how() const { return how_; }

 private:
  std::unique_ptr<const KeyedTextReader> reader_;
  RunText how_;
};

}  // namespace trireme
