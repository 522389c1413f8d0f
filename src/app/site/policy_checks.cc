#include "src/app/site/policy_checks.h"

#include <fmt/format.h>

#include "src/app/access/run_deeds.h"
#include "src/base/error.h"

namespace trireme {

std::vector<Finding> check_policy(const AccessSource& access, const RunConfig& config,
                                  const std::string& host) {
  const Access* policy = nullptr;
  try {
    policy = &access();
  } catch (const Error& error) {
    return {error_of(error, host)};
  }
  if (!policy->has_policy()) {
    return {};
  }
  RunDeeds run(*policy);
  try {
    run.ask_for(config);
  } catch (const Error&) {
    // What could be asked before that counts.
  }
  std::vector<Finding> found;
  for (const CheckedDeed& deed : run.deeds()) {
    if (!deed.decision.allowed) {
      found.push_back(
          {Severity::error, ExitCode::refused,
           fmt::format("{}: the policy of the site refuses to {} the {} {}: {}", deed.what,
                       word_of(deed.request.deed), word_of(deed.request.thing),
                       deed.request.path.string(), deed.decision.why),
           host, "`trireme policy check` says what it allows, and why"});
    }
  }
  return found;
}

}  // namespace trireme
