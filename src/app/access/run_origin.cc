#include "src/app/access/run_origin.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "mpi/agreement.h"
#include "src/app/command/version.h"
#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/file.h"

namespace trireme {

RunOrigin origin_of(const LoadedConfig& loaded, const std::vector<std::string>& arguments,
                    const std::vector<RankPlace>& places) {
  RunOrigin origin;
  origin.config_yaml = loaded.binder.to_yaml();
  origin.arguments = arguments;
  origin.versions = JsonValue(nlohmann::json(version_json()));
  for (const RankPlace& place : places) {
    if (std::find(origin.hosts.begin(), origin.hosts.end(), place.host) == origin.hosts.end()) {
      origin.hosts.push_back(place.host);
    }
  }
  origin.ranks = static_cast<int>(places.size());
  const char* const job = std::getenv("SLURM_JOB_ID");
  origin.job = job == nullptr ? "" : job;
  origin.started = utc_now();
  origin.invocation = fmt::format("{}/{}/{}", places.empty() ? "" : places.front().host, ::getpid(),
                                  origin.started);
  if (!loaded.config.audit.key.empty()) {
    origin.key = SigningKey::load(loaded.config.audit.key);
  }
  return origin;
}

const RunOrigin* write_bill_of_materials(const RunConfig& config, Communicator& world,
                                         RunOrigin& origin) {
  if (config.audit.key.empty()) {
    return nullptr;
  }
  (void)run_on_root(world, [&] {
    const BillText bill = own_bill_text();
    const std::filesystem::path file =
        config.run_dir / fmt::format("sbom-{}.cyclonedx.json", bill.uuid);
    std::error_code unknown;
    if (!std::filesystem::exists(file, unknown) || read_file(file) != bill.text) {
      write_file_durably(file, bill.text);
    }
    origin.bill = file;
    origin.bill_sha256 = sha256_hex(bill.text);
    return std::string();
  });
  return &origin;
}

nlohmann::ordered_json start_details(const RunConfig& config, const RunOrigin& origin) {
  return {{"run", std::filesystem::absolute(config.run_dir).lexically_normal().string()},
          {"arguments", origin.arguments},
          {"ranks", origin.ranks},
          {"hosts", origin.hosts},
          {"job", origin.job}};
}

}  // namespace trireme
