#include "src/app/start_details.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

namespace trireme {

nlohmann::ordered_json start_details(const RunConfig& config,
                                     const std::vector<std::string>& arguments,
                                     const std::vector<RankPlace>& places) {
  std::vector<std::string> hosts;
  for (const RankPlace& place : places) {
    if (std::find(hosts.begin(), hosts.end(), place.host) == hosts.end()) {
      hosts.push_back(place.host);
    }
  }
  const char* const job = std::getenv("SLURM_JOB_ID");
  return {{"run", std::filesystem::absolute(config.run_dir).string()},
          {"arguments", arguments},
          {"ranks", places.size()},
          {"hosts", hosts},
          {"job", job == nullptr ? "" : job}};
}

}  // namespace trireme
