#include "src/app/command/audit_trail.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <nlohmann/json.hpp>

#include "src/app/command/launcher_rank.h"
#include "src/app/command/version.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

// Commands without a run's configuration that read or change data or models.
constexpr std::array<std::array<std::string_view, 2>, 24> kAudited = {
    {{"eval", ""},        {"generate", ""},    {"import", ""},          {"export", ""},
     {"sparsify", ""},    {"data", "pack"},    {"data", "convert"},     {"data", "encrypt"},
     {"data", "decrypt"}, {"data", "export"},  {"ckpt", "export"},      {"release", "request"},
     {"release", "sign"}, {"registry", "add"}, {"registry", "promote"}, {"registry", "rollback"},
     {"ckpt", "prune"},   {"keys", "create"},  {"keys", "add"},         {"keys", "remove"},
     {"keys", "rotate"},  {"keys", "destroy"}, {"erase", ""},           {"log", ""}}};

// Returns "data pack", or "" for a command that is not recorded, such as one that prints its help.
std::string audited_command(const std::vector<std::string>& arguments) {
  const auto is_help = [](const std::string& word) { return word == "--help" || word == "-h"; };
  if (arguments.empty() || std::any_of(arguments.begin(), arguments.end(), is_help)) {
    return "";
  }
  for (const auto& [command, subcommand] : kAudited) {
    if (arguments[0] == command && subcommand.empty()) {
      return std::string(command);
    }
    if (arguments[0] == command && arguments.size() > 1 && arguments[1] == subcommand) {
      return fmt::format("{} {}", command, subcommand);
    }
  }
  return "";
}

// Returns whether the word can be the name of a command.
bool is_plain_word(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(),
                                      [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; });
}

std::string event_name(std::string command, std::string_view what) {
  std::replace(command.begin(), command.end(), ' ', '.');
  return fmt::format("{}.{}", command, what);
}

}  // namespace

void AuditTrail::begin(const AuditConfig& config, const std::string& command,
                       const ordered_json& details) {
  if (rank_before_start() != 0) {
    return;
  }
  if (config.lacks_log()) {  // nothing would be recorded, and nobody would notice
    throw ConfigError(AuditConfig::kLacksLog);
  }
  if (config.log.empty()) {
    return;
  }
  std::optional<SigningKey> key;
  if (!config.key.empty()) {
    key = SigningKey::load(config.key);
  }
  auto log = std::make_unique<AuditLog>(config.log, std::move(key));
  copies_.clear();
  for (const std::string& copy : config.copies) {
    copies_.emplace_back(copy).check();  // before the log says that the command has started
  }
  const ordered_json version = version_json();
  std::error_code unknown;
  ordered_json all = {{"version", version["version"]},
                      {"commit", version["commit"]},
                      {"working_folder", std::filesystem::current_path(unknown).string()}};
  all.update(details);
  record(*log, event_name(command, "start"), all);
  log_ = std::move(log);
  command_ = command;
}

void AuditTrail::begin_if_audited(const std::vector<std::string>& arguments,
                                  const char* const* environment) {
  const std::string command = audited_command(arguments);
  if (!command.empty()) {
    RecordedArguments recorded = recorded_arguments(arguments, options_);
    begin(site_audit_config(environment), command, {{"arguments", recorded.words}});
    hidden_ = std::move(recorded.hidden);
  }
}

void AuditTrail::begin_for_refusal(const std::vector<std::string>& arguments,
                                   const char* const* environment) {
  if (is_active() || arguments.empty()) {
    return;
  }
  const bool has_subcommand =
      arguments.size() > 1 && is_plain_word(arguments[0]) && is_plain_word(arguments[1]);
  RecordedArguments recorded = recorded_arguments(arguments, options_);
  begin(site_audit_config(environment),
        has_subcommand ? fmt::format("{} {}", arguments[0], arguments[1]) : arguments[0],
        {{"arguments", recorded.words}});
  hidden_ = std::move(recorded.hidden);
}

void AuditTrail::record(AuditLog& log, std::string_view event, const ordered_json& details) const {
  std::string lines;
  log.append(event, details, &lines);
  for (const AuditCopy& copy : copies_) {
    copy.send(lines);
  }
}

void AuditTrail::note(std::string_view event, const ordered_json& details) {
  if (log_ == nullptr) {
    return;
  }
  try {
    record(*log_, event, details);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("trireme: warning: the event {} is missing from the audit log, or from "
                           "a copy of it: {}\n",
                           event, printable(error.what()))
                   .c_str(),
               stderr);
  }
}

void AuditTrail::end(int code, std::string_view kind, std::string_view what) {
  ordered_json details = {{"code", code}};
  if (!kind.empty()) {
    details["kind"] = kind;
    const bool repeats = std::any_of(hidden_.begin(), hidden_.end(), [&](const std::string& text) {
      return what.find(text) != std::string_view::npos;
    });
    details["message"] = repeats ? "not recorded, because it may repeat a prompt or a key" : what;
  }
  details.update(ordered_json(*end_details_));
  note(event_name(command_, code == static_cast<int>(ExitCode::refused) ? "refused" : "end"),
       details);
  log_.reset();
}

}  // namespace trireme
