#include "src/app/access/run_text_keys.h"

#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

#include "mpi/agreement.h"
#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/keys/closed_logs.h"
#include "src/keys/log_keys.h"

namespace trireme {

RunTextKeys::RunTextKeys(const RunConfig& config, StepKeys* keys, Communicator& world, Log& log,
                         Audit audit)
    : audit_(std::move(audit)), run_(config.run_dir) {
  if (!config.encryption.logs) {
    return;
  }
  check(keys != nullptr, "encryption.logs needs encryption.keys");
  key_ = keys->log_key();
  how_.sealer =
      std::make_shared<const LogSealer>(run_, std::shared_ptr<const DataKey>(key_, &key_->key));
  reader_ = std::make_unique<const KeyedTextReader>(keys->shared().ring());
  how_.reader = reader_.get();
  const std::string were_plain = run_on_root(world, [&] {
    BegunLogs begun = begin_encrypted_files(run_, *key_, *how_.sealer);
    start_ = begun.start;
    if (audit_ && !start_.run.empty()) {
      audit_("logs.begun", {{"logs", start_.run}, {"start", start_.number}, {"key", start_.key}});
    }
    return begun.warning;
  });
  log.write_encrypted(how_.sealer);
  if (!were_plain.empty() && world.rank() == 0) {
    log.warning(were_plain);
  }
}

void RunTextKeys::bind_label(const std::optional<Label>& label, Communicator& world) {
  if (key_ == nullptr) {
    return;
  }
  (void)run_on_root(world, [&] {
    label_logs(run_, start_, label ? to_json(*label).dump() : "", key_->key);
    return std::string();
  });
}

void RunTextKeys::close(Communicator& world, Log& log) const {
  if (key_ == nullptr) {
    return;
  }
  (void)all_reduce_value(world, std::int64_t{0}, ReduceOp::max);  // all ranks have come this far
  (void)run_on_root(world, [&] {
    if (start_.run.empty()) {
      return std::string();
    }
    try {
      const std::int64_t files = close_logs(run_, start_, key_->key);
      if (audit_) {
        audit_("logs.closed",
               {{"logs", start_.run},
                {"start", start_.number},
                {"key", start_.key},
                {"files", files},
                {"sha256", sha256_hex(read_file(closed_logs_file(run_, start_.key)))}});
      }
    } catch (const std::exception& error) {
      log.warning(fmt::format(
          "no record says how the encrypted files of the run end, so that a cut would not be "
          "noticed: {}",
          error.what()));
    }
    return std::string();
  });
}

}  // namespace trireme
