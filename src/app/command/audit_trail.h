// AuditTrail records in the audit log of a site what a command of this process does: its start, its
// end with the exit code, and events between. It records nothing if the configuration names no log,
// and nothing on ranks other than 0. Owned by AppContext; used by the main thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/base/json_value.h"
#include "src/evidence/audit_copy.h"
#include "src/evidence/audit_log.h"
#include "src/train/run/run_config.h"

namespace trireme {

// The options that a command line may have, such as "--out".
using OptionNames = std::vector<std::string>;

class AuditTrail {
 public:
  // Says which options the command knows; what follows others may be a secret. Without this call,
  // it knows all.
  void know_options(OptionNames names) { options_ = std::move(names); }
  // Records COMMAND.start. Throws what AuditLog::append(), AuditCopy::send() and
  // SigningKey::load() throw, since a command whose start cannot be recorded must not run, and
  // ConfigError for copies that are misspelt or have no log.
  void begin(const AuditConfig& config, const std::string& command,
             const nlohmann::ordered_json& details);
  // Does this for the commands without a run's configuration that are recorded, with what the
  // site's files and the environment say. The text of a prompt is not recorded, only its digest.
  void begin_if_audited(const std::vector<std::string>& arguments, const char* const* environment);
  // Begins for a command that is about to be refused, unless it is recorded already.
  void begin_for_refusal(const std::vector<std::string>& arguments, const char* const* environment);
  // Records an event, such as checkpoint.saved, between start and end. If that fails, prints a
  // warning.
  void note(std::string_view event, const nlohmann::ordered_json& details);
  // Records COMMAND.refused if the code is 77, else COMMAND.end. Later calls do nothing.
  void end(int code, std::string_view kind = "", std::string_view what = "");
  bool is_active() const { return log_ != nullptr; }
  // What the last event says besides the code and the error, such as what was deleted.
  JsonValue& end_details() { return end_details_; }

 private:
  // Appends to the log and then sends it to the copies. Throws if either fails.
  void record(AuditLog& log, std::string_view event, const nlohmann::ordered_json& details) const;

  std::unique_ptr<AuditLog> log_;
  std::vector<AuditCopy> copies_;
  std::string command_;
  OptionNames options_;
  std::vector<std::string> hidden_;  // texts that no message may repeat
  JsonValue end_details_;
};

struct RecordedArguments {
  std::vector<std::string> words;
  std::vector<std::string> hidden;  // the texts of which `words` have the digests
};

// Returns the arguments as they are recorded. Those of `generate` have the SHA-256 of everything
// that may be a prompt, also one behind a mistyped option, instead of its text. Those of other
// commands have it instead of secrets in the URIs of keys, and of the values of unknown options,
// such as a mistyped --key. known: if it is empty, no option is unknown.
RecordedArguments recorded_arguments(const std::vector<std::string>& arguments,
                                     const OptionNames& known = {});

}  // namespace trireme
