#include "src/app/command/audit_trail.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include <nlohmann/json.hpp>

#include "src/app/command/launcher_rank.h"
#include "src/app/command/version.h"
#include "src/base/digest.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

// Commands without a run's configuration that read or change data or models.
constexpr std::array<std::array<std::string_view, 2>, 6> kAudited = {{{"eval", ""},
                                                                      {"generate", ""},
                                                                      {"export", ""},
                                                                      {"data", "pack"},
                                                                      {"data", "convert"},
                                                                      {"ckpt", "prune"}}};

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

std::string event_name(std::string command, std::string_view what) {
  std::replace(command.begin(), command.end(), ' ', '.');
  return fmt::format("{}.{}", command, what);
}

}  // namespace

std::vector<std::string> recorded_arguments(const std::vector<std::string>& arguments) {
  constexpr std::string_view kPrompt = "--prompt";
  std::vector<std::string> recorded;
  bool is_prompt = false;
  for (const std::string& word : arguments) {
    if (is_prompt) {
      recorded.push_back("sha256:" + sha256_hex(word));
    } else if (word.starts_with(std::string(kPrompt) + "=")) {
      recorded.push_back(
          fmt::format("{}=sha256:{}", kPrompt, sha256_hex(word.substr(kPrompt.size() + 1))));
    } else {
      recorded.push_back(word);
    }
    is_prompt = !is_prompt && word == kPrompt;
  }
  return recorded;
}

void AuditTrail::begin(const AuditConfig& config, const std::string& command,
                       const ordered_json& details) {
  if (config.log.empty() || rank_before_start() != 0) {
    return;
  }
  std::optional<SigningKey> key;
  if (!config.key.empty()) {
    key = SigningKey::load(config.key);
  }
  auto log = std::make_unique<AuditLog>(config.log, std::move(key));
  const ordered_json version = version_json();
  ordered_json all = {{"version", version["version"]}, {"commit", version["commit"]}};
  all.update(details);
  log->append(event_name(command, "start"), all);
  log_ = std::move(log);
  command_ = command;
}

void AuditTrail::begin_if_audited(const std::vector<std::string>& arguments,
                                  const char* const* environment) {
  const std::string command = audited_command(arguments);
  if (!command.empty()) {
    begin(site_audit_config(environment), command, {{"arguments", recorded_arguments(arguments)}});
  }
}

void AuditTrail::note(std::string_view event, const ordered_json& details) {
  if (log_ == nullptr) {
    return;
  }
  try {
    log_->append(event, details);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("trireme: warning: the event {} is missing from the audit log: {}\n",
                           event, printable(error.what()))
                   .c_str(),
               stderr);
  }
}

void AuditTrail::end(int code, std::string_view kind, std::string_view what) {
  ordered_json details = {{"code", code}};
  if (!kind.empty()) {
    details["kind"] = kind;
    details["message"] = what;
  }
  note(event_name(command_, code == static_cast<int>(ExitCode::refused) ? "refused" : "end"),
       details);
  log_.reset();
}

}  // namespace trireme
