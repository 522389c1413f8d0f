#include "src/app/access/run_text_keys.h"

#include <algorithm>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/checkpoint/step_keys_file.h"
#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/keys/closed_logs.h"
#include "src/keys/log_keys.h"

namespace trireme {
namespace {

// Returns the files that are not as earlier starts have left them, for the audit log.
nlohmann::ordered_json details_of_foreign(const BegunLogs& begun) {
  constexpr std::size_t kMostNames = 100;  // an event has a limited size
  nlohmann::ordered_json details = {{"logs", begun.start.run}, {"start", begun.start.number}};
  for (const auto& [what, names] :
       {std::pair{"set_aside", &begun.set_aside}, std::pair{"taken_over", &begun.taken_over},
        std::pair{"missing", &begun.missing}}) {
    if (!names->empty()) {
      const auto count = static_cast<std::ptrdiff_t>(std::min(kMostNames, names->size()));
      details[what] = std::vector<std::string>(names->begin(), names->begin() + count);
      details[fmt::format("{}_count", what)] = names->size();
    }
  }
  return details;
}

// Throws PolicyError if no key of the ring opens the newest checkpoint, if that is encrypted: this
// start will be refused, and must leave no key of its logs, which its owner could not open.
void check_newest_step_opens(const std::filesystem::path& folder, const KeyRing& ring) {
  std::error_code absent;
  if (!std::filesystem::is_directory(folder, absent)) {
    return;
  }
  for (const StepFolder& step : list_steps(folder)) {
    if (!step.manifest) {
      continue;
    }
    if (step.manifest->data_key.empty()) {
      return;
    }
    try {
      (void)ring.unwrap(read_step_keys(step.path, *step.manifest),
                        (step.path / kKeysFileName).string());
    } catch (const DataError&) {
      // The start says so when it loads the step.
    }
    return;
  }
}

}  // namespace

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
    check_newest_step_opens(config.checkpoint_dir(), keys->shared().ring());
    check_newest_logs_open(run_, keys->shared().ring());
    BegunLogs begun = begin_encrypted_files(run_, *key_, *how_.sealer);
    start_ = begun.start;
    if (audit_ && !start_.run.empty()) {
      audit_("logs.begun", {{"logs", start_.run}, {"start", start_.number}, {"key", start_.key}});
    }
    if (audit_ && begun.are_foreign()) {
      audit_("logs.replaced", details_of_foreign(begun));
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
