// Parses any bytes as output of scontrol, and their NAME=VALUE lines as the environment variables
// of a Slurm job.
#include <algorithm>
#include <map>

#include "slurm/job/job_environment.h"
#include "slurm/job/topology.h"
#include "slurm/launch/deputy.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text = trireme::text_of(data, bytes);
  (void)trireme::parse_topology(text);
  (void)trireme::parse_job_state(text);
  (void)trireme::parse_job(text);
  std::map<std::string, std::string> variables;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line(text.substr(at, end - at));
    const std::size_t equals = std::min(line.find('='), line.size());
    variables[line.substr(0, equals)] = line.substr(std::min(equals + 1, line.size()));
    at = end + 1;
  }
  const auto environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  trireme::refuses_only_with<trireme::ConfigError>([&] { (void)trireme::slurm_job(environment); });
  return 0;
}
