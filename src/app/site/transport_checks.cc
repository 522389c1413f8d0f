#include "src/app/site/transport_checks.h"

#include <algorithm>

#include "mpi/network/transport_rule.h"
#include "src/base/error.h"
#include "src/base/memory_lock.h"
#include "src/base/syscall_filter.h"

namespace trireme {

std::vector<Finding> check_transport(const SecurityConfig& config, const std::string& host,
                                     bool between_hosts) {
  std::vector<Finding> found;
  try {
    const TransportRule rule = parse_transport_rule(config.transport, config.networks);
    if (rule.kind == TransportKind::any) {
      return found;
    }
    const std::vector<std::string> settings = rdma_settings(process_environment());
    for (const std::string& breach : breaches(rule, observe_transport(), settings, between_hosts)) {
      found.push_back({Severity::error, ExitCode::refused,
                       fmt::format("security.transport: {}: {}", rule.text(), breach), host,
                       transport_advice(rule)});
    }
  } catch (const Error& error) {
    found.push_back(error_of(error, host));
  }
  return found;
}

std::vector<Finding> check_seccomp(const SecurityConfig& config, const std::string& host) {
  const std::string obstacle = config.seccomp ? SyscallFilter::obstacle() : "";
  if (obstacle.empty()) {
    return {};
  }
  return {{Severity::error, ExitCode::refused,
           fmt::format("security.seccomp: system calls cannot be filtered: {}", obstacle), host,
           "use Linux 5.7 or newer with seccomp, or set security.seccomp to false"}};
}

std::vector<Finding> check_memory_lock(const SecurityConfig& config, const std::string& host) {
  const std::string obstacle = config.lock_memory ? memory_lock_obstacle() : "";
  if (obstacle.empty()) {
    return {};
  }
  return {{Severity::error, ExitCode::refused, fmt::format("security.lock_memory: {}", obstacle),
           host,
           "raise 'ulimit -l' to unlimited: memlock in /etc/security/limits.conf, LimitMEMLOCK of "
           "slurmd, and PropagateResourceLimitsExcept=MEMLOCK in slurm.conf"}};
}

bool spans_hosts(const std::vector<RankPlace>& places) {
  return std::any_of(places.begin(), places.end(),
                     [&](const RankPlace& place) { return place.host != places.front().host; });
}

}  // namespace trireme
