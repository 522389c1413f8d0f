// The part of LaunchChecks about the devices that the ranks get.
#include <optional>

#include "mpi/agreement.h"
#include "src/app/site/gpu_checks.h"
#include "src/app/site/launch_checks.h"
#include "src/base/error.h"
#include "src/device/cuda_device.h"
#include "src/train/start/rank_devices.h"

namespace trireme {

std::vector<Finding> LaunchChecks::devices(const PlannedRanks& planned,
                                           std::vector<std::string>& summaries) {
  std::vector<Finding> found;
  const bool on_gpus = config_.train.device != "cpu" && cuda::device_count() > 0;
  const std::string seen = of_this_host(all_gather_text(world_, on_gpus ? seen_gpus() : ""));
  // Before the ranks become users of their GPUs.
  std::optional<GpuSurroundings> here;
  if (on_gpus && own().local_rank == 0) {
    const int ranks = planned.per_host > 0 ? planned.per_host : own().local_size;
    here = gpu_surroundings(own().host, own().local_size, ranks, seen);
    summaries.push_back(fmt::format("{}: {}", own().host, gpu_summary(*here)));
  }
  std::vector<Finding> agreed;
  try {
    const auto warn = [&](const std::string& text) {
      agreed.push_back(warning_of(text, "all ranks", ""));
    };
    devices_ = agree_on_devices(config_, places_, world_, warn, {});  // check_gpus() names users
  } catch (const Error& error) {
    if (world_.rank() == 0) {
      agreed.push_back(error_of(error, "all ranks"));
    }
  }
  if (here) {
    const bool as_now = planned.world == 0 || planned.world == world_.size();
    for (std::size_t rank = 0; as_now && rank < devices_.size(); ++rank) {
      if (places_[rank].host == own().host) {
        here->used.insert({devices_[rank].uuid, devices_[rank].bus});
      }
    }
    found = check_gpus(*here, config_.train.share_device, process_environment());
  }
  append(found, agreed);
  return found;
}

std::string LaunchChecks::of_this_host(const std::vector<std::string>& texts) const {
  std::string all;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    all += places_[rank].host == own().host ? texts[rank] : "";
  }
  return all;
}

}  // namespace trireme
