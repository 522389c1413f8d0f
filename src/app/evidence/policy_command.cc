#include "src/app/evidence/policy_command.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/app/access/run_deeds.h"
#include "src/app/command/standard_output.h"
#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/printable.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

struct CheckOptions {
  std::string file;
  std::vector<std::string> arguments;
  bool json = false;
};

std::string roles_text(const Access& access) {
  std::string text;
  for (const HeldRole& held : access.roles()) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", held.role->name, held.why);
  }
  return text.empty() ? "none" : text;
}

void print_site(const Access& access) {
  if (!access.has_policy()) {
    fmt::print("policy   none: {} does not exist, so that nothing is refused\n", kPolicyFile);
    return;
  }
  const Policy& policy = *access.policy();
  fmt::print("policy   {}, sha256:{}\n", kPolicyFile, policy.sha256);
  fmt::print("site     {}, jurisdiction {}, host {}\n",
             policy.site.name.empty() ? "(no name)" : printable(policy.site.name),
             printable(policy.site.jurisdiction), printable(host_name()));
  fmt::print("user     {}\n", printable(access.caller().to_string()));
  if (!access.caller().why_no_account.empty()) {
    fmt::print("account  none: {}\n", printable(access.caller().why_no_account));
  }
  fmt::print("roles    {}\n", printable(roles_text(access)));
}

void print_deed(const CheckedDeed& deed) {
  const Request& request = deed.request;
  fmt::print("{:<8} {} the {} {} ({})\n         {}: {}\n",
             deed.decision.allowed ? "allowed" : "REFUSED", word_of(request.deed),
             word_of(request.thing), printable(request.path.string()), deed.what,
             printable(request.label ? request.label->to_string() : "no label"),
             printable(deed.decision.why));
}

ordered_json to_json(const Access& access, const RunDeeds& check) {
  ordered_json roles = ordered_json::array();
  for (const HeldRole& held : access.roles()) {
    roles.push_back({{"role", held.role->name}, {"why", held.why}});
  }
  ordered_json deeds = ordered_json::array();
  for (const CheckedDeed& deed : check.deeds()) {
    deeds.push_back({{"key", deed.what},
                     {"deed", word_of(deed.request.deed)},
                     {"thing", word_of(deed.request.thing)},
                     {"path", deed.request.path.string()},
                     {"label", label_json(deed.request.label)},
                     {"allowed", deed.decision.allowed},
                     {"role", deed.decision.role},
                     {"why", deed.decision.why}});
  }
  return {{"schema", 1},
          {"policy", access.has_policy() ? ordered_json(std::string(kPolicyFile)) : ordered_json()},
          {"policy_sha256",
           access.has_policy() ? ordered_json(access.policy()->sha256) : ordered_json()},
          {"user", access.caller().user},
          {"roles", std::move(roles)},
          {"allowed", check.is_allowed()},
          {"deeds", std::move(deeds)}};
}

void check_run(const CheckOptions& options, const Access& access, int& exit_code) {
  const LoadedConfig loaded = load_run_config(
      {.file = options.file, .arguments = options.arguments, .environment = environ});
  RunDeeds check(access);
  check.ask_for(loaded.config);
  if (options.json) {
    print_json(to_json(access, check));
  } else {
    print_site(access);
    for (const CheckedDeed& deed : check.deeds()) {
      print_deed(deed);
    }
    fmt::print("{}\n",
               check.is_allowed() ? "The policy allows this run." : "The policy refuses this run.");
  }
  if (!check.is_allowed()) {
    exit_code = static_cast<int>(ExitCode::refused);
  }
}

}  // namespace

void add_policy_command(CommandLine& app, const AccessSource& access, int& exit_code) {
  CommandLine& policy =
      app.add_command("policy", "Say what the policy of the site allows, and why");
  policy.require_command();
  policy.footer("Example:\n  trireme policy check run.yaml");
  CommandLine& command = policy.add_command(
      "check", "Say what a run would read and write, and whether it may; exit with 77 if not");
  const auto options = std::make_shared<CheckOptions>();
  command.add_option("CONFIG", options->file, "The run's YAML file").required();
  command.add_option("KEY=VALUE", options->arguments,
                     "Configuration keys to override, as in data.train=/data/c4");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example:\n"
      "  trireme policy check run.yaml data.train=/data/c4\n"
      "Reads /etc/trireme/policy.yaml and manifests, but no data, and changes and records nothing. "
      "Asks for this user on this host: other hosts of a run ask for themselves.");
  command.callback([options, access, &exit_code] { check_run(*options, access(), exit_code); });
}

}  // namespace trireme
