// RunTextKeys holds what a run needs to write and read its logs, metrics and traces: with
// encryption.logs, the key of this start and those of earlier ones. Owned by the command; used by
// the main thread. It outlives all who use how().
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/step_keys.h"
#include "src/base/log.h"
#include "src/base/run_text.h"
#include "src/keys/keyed_text_reader.h"
#include "src/keys/log_starts.h"
#include "src/policy/label.h"
#include "src/train/run/run_config.h"

namespace trireme {

class RunTextKeys {
 public:
  // Records an event in the site's audit log; empty on ranks other than 0, and without a log.
  using Audit = std::function<void(std::string_view event, const nlohmann::ordered_json& details)>;

  // Collective. With encryption.logs, rank 0 stores the wrapped key of this start in the run's
  // folder, and encrypts what earlier starts have written in plain; then `log` writes its file.
  // keys: null without encryption.keys; outlives this object.
  RunTextKeys(const RunConfig& config, StepKeys* keys, Communicator& world, Log& log, Audit audit);

  const RunText& how() const { return how_; }
  // Returns this start on rank 0; without a key if nothing is encrypted or the run has no identity.
  LogStart start() const { return start_.run.empty() ? LogStart() : start_; }

  // Collective. Binds the label of what this start has read to what it encrypts.
  void bind_label(const std::optional<Label>& label, Communicator& world);

  // Collective; called at an orderly end, when only logs are still open. Records how the run's
  // files end by now (closed_logs.h), in the run's folder and in the audit log. If that fails, logs
  // a warning.
  void close(Communicator& world, Log& log) const;

 private:
  Audit audit_;
  std::filesystem::path run_;
  std::shared_ptr<const FolderKey> key_;  // null without encryption.logs
  LogStart start_;                        // on rank 0
  std::unique_ptr<const KeyedTextReader> reader_;
  RunText how_;
};

}  // namespace trireme
