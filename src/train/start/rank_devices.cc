#include "src/train/start/rank_devices.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "mpi/agreement.h"
#include "mpi/nccl/nccl_world.h"
#include "mpi/rank_fault.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"
#include "src/compute/device_choice.h"
#include "src/device/cuda_device.h"
#include "src/device/mps_folder.h"
#include "src/train/start/driver_words.h"

namespace trireme {
namespace {

// The oldest version with all functions that this program calls.
constexpr int kOldestNccl = 22200;  // aborts several communicators at once
// NCCL connects several ranks of one GPU from this version on, if a variable of its own says so. On
// an H200, two ranks of 2.30.7 stood still in the first step unless the other two variables kept
// NCCL's own memory and registered buffers out of it.
constexpr int kNcclSharesFrom = 23000;
constexpr const char* kNcclShares =
    "NCCL_MULTI_RANK_GPU_ENABLE=1, NCCL_CUMEM_ENABLE=0 and NCCL_LOCAL_REGISTER=0";

// Returns a variable of NCCL, which reads it as a number; `missing` if it is not set.
std::int64_t nccl_number(const char* name, std::int64_t missing) {
  const char* value = std::getenv(name);
  return value == nullptr ? missing : std::strtol(value, nullptr, 0);
}

bool nccl_shares() {
  return nccl_version_code() >= kNcclSharesFrom &&
         nccl_number("NCCL_MULTI_RANK_GPU_ENABLE", 0) != 0 &&
         nccl_number("NCCL_CUMEM_ENABLE", 1) == 0 && nccl_number("NCCL_LOCAL_REGISTER", 1) == 0;
}

// Sight holds the devices that a rank sees before it gets one.
struct Sight {
  std::string fault;               // why it has no device, although it needs one
  bool is_device_fault = false;    // whether the reason is a fault of a device of this host
  std::vector<std::string> uuids;  // of all devices that it sees; none: it computes on the CPU
  std::vector<DeviceNearness> devices;
};

Sight look_around(const std::string& word) {
  Sight sight;
  try {
    if (choose_device(word).kind != DeviceKind::cuda) {
      return sight;
    }
    for (int index = 0; index < cuda::device_count(); ++index) {
      const cuda::DeviceFacts facts = cuda::device_identity(index);
      sight.uuids.push_back(facts.uuid);
      sight.devices.push_back({numa_node_of(facts.bus)});
    }
  } catch (const DeviceError& error) {
    sight.fault = error.what();
    sight.is_device_fault = true;
  } catch (const Error& error) {
    sight.fault = error.what();
    if (const std::string gpus = gpus_of_host(); !gpus.empty()) {
      sight.fault += fmt::format(" ({})", gpus);
    }
  }
  return sight;
}

// Throws on all ranks alike if some of them have no device. If no rank has one and none reports a
// fault of a device, the configuration does not fit these nodes; otherwise a node is at fault.
void check_all_have_devices(const std::string& fault, bool is_device_fault, Communicator& world) {
  std::string faults = gather_faults(world, fault);
  if (faults.empty()) {
    return;
  }
  if (world.size() == 1) {  // otherwise each fault names its ranks and their hosts
    faults = fmt::format("on {}, {}", world.host(0), faults);
  }
  const std::int64_t unfit = fault.empty() || is_device_fault ? 0 : 1;
  if (all_reduce_value(world, unfit, ReduceOp::sum) == world.size()) {
    throw ConfigError(faults);
  }
  const std::int64_t rank = fault.empty() ? world.size() : world.rank();
  throw RankFault(faults, static_cast<int>(all_reduce_value(world, rank, ReduceOp::min)));
}

// Returns the device of this rank. The ranks of its host that see the same devices share them out
// among themselves. Collective.
Device share_out(const Sight& own, const std::vector<RankPlace>& places, Communicator& world,
                 bool may_share, std::string& fault) {
  const std::vector<std::string> seen =
      all_gather_text(world, fmt::format("{}", fmt::join(own.uuids, ",")));
  if (own.uuids.empty()) {
    return Device::cpu();
  }
  const auto me = static_cast<std::size_t>(world.rank());
  std::vector<RankNearness> ranks;
  std::size_t my_place = 0;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank].host == places[me].host && seen[rank] == seen[me]) {
      my_place = rank == me ? ranks.size() : my_place;
      ranks.push_back({numbers_in(places[rank].binding.numa_nodes)});
    }
  }
  const std::size_t count = own.uuids.size();
  if (count > 1 && count < ranks.size() && !may_share) {
    fault = fmt::format(
        "this host has {} CUDA devices for {} ranks, but each rank needs its own: start {} ranks "
        "per host, or set train.device=cpu",
        count, ranks.size(), count);
    return Device::cpu();
  }
  return {DeviceKind::cuda, assign_devices(ranks, own.devices)[my_place]};
}

// Returns why a rank with this device cannot be connected; empty if it can. Even a world of one
// rank needs NCCL.
std::string connection_fault(Device device, const std::string& word) {
  const std::string trouble = device.kind == DeviceKind::cuda ? nccl_trouble() : "";
  const char* const use_cpu = word == "auto" ? "; to compute on the CPU, set train.device=cpu" : "";
  return trouble.empty() ? "" : trouble + use_cpu;
}

// Why a rank cannot use its device. At most one of them is not empty.
struct Refusal {
  std::string fault;
  std::string full;   // it has no memory left for another process
  std::string unfit;  // this program cannot run on such a device
};

// Begins to use the device, which fails if another process uses it exclusively.
RankDevice use_device(Device device, Refusal& refusal) {
  RankDevice made;
  if (device.kind != DeviceKind::cuda) {
    return made;
  }
  try {
    const cuda::DeviceFacts facts = cuda::device_facts(device.index);
    made = {true,
            cuda::back_end() == cuda::BackEnd::simulated,
            device.index,
            facts.name,
            facts.uuid,
            facts.bus,
            facts.multiprocessors,
            facts.compute_capability};
  } catch (const ConfigError& error) {
    refusal.unfit = error.what();
  } catch (const ResourceError& error) {
    refusal.full = error.what();
  } catch (const Error& error) {
    refusal.fault = error.what();
  }
  return made;
}

// Adds what the driver knows about the reason. users: as of users_of_gpu().
void explain(Refusal& refusal, const std::string& uuid, const std::string& users) {
  for (std::string* const text : {&refusal.fault, &refusal.full}) {
    const std::string reason = text->empty() ? "" : refusal_of_gpu(uuid);
    for (const std::string& each : {reason, users}) {
      *text += text->empty() || each.empty() ? "" : fmt::format(" ({})", each);
    }
  }
}

// Throws on all ranks alike if some of them cannot use theirs. A device without memory is no fault
// of its node: `trireme launch` does not blame the node for it.
void check_all_can_use_theirs(const Refusal& own, Communicator& world) {
  if (const std::string all_unfit = gather_faults(world, own.unfit); !all_unfit.empty()) {
    throw ConfigError(all_unfit);
  }
  for (const auto& [text, kind] :
       {std::pair(&own.fault, "device"), std::pair(&own.full, "memory")}) {
    const std::string faults = gather_faults(world, *text);
    const std::int64_t rank = text->empty() ? world.size() : world.rank();
    if (!faults.empty()) {
      throw RankFault(faults, static_cast<int>(all_reduce_value(world, rank, ReduceOp::min)), kind);
    }
  }
}

// Checks whether the ranks' devices fit together. Every rank has the same arguments.
class Comparison {
 public:
  Comparison(const RunConfig& config, const std::vector<RankDevice>& devices, Communicator& world,
             const std::function<void(const std::string&)>& warn)
      : config_(config), devices_(devices), world_(world), warn_(warn) {}

  void run() const;

 private:
  void check_kinds(std::size_t rank) const;
  void check_unshared(std::size_t rank) const;
  void check_alike(std::size_t rank) const;
  void check_whole(std::size_t rank) const;
  void check_mps() const;
  void check_nccl() const;
  void refuse_unless_shared(const std::string& what) const;
  std::string numbers_on(const std::string& host) const;
  std::string who(std::size_t rank) const {
    return world_.members().describe(static_cast<int>(rank));
  }
  std::string where(std::size_t rank) const { return world_.host(static_cast<int>(rank)); }

  const RunConfig& config_;
  const std::vector<RankDevice>& devices_;
  Communicator& world_;
  const std::function<void(const std::string&)>& warn_;
};

void Comparison::run() const {
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    check_kinds(rank);
  }
  const bool on_gpus = devices_.front().is_gpu;
  for (std::size_t rank = 0; on_gpus && rank < devices_.size(); ++rank) {
    check_unshared(rank);
    check_whole(rank);
    check_alike(rank);
  }
  check_mps();
  check_nccl();
}

void Comparison::check_kinds(std::size_t rank) const {
  if (devices_[rank].is_gpu != devices_.front().is_gpu) {
    throw ConfigError(
        fmt::format("{} computes on {}, but {} on {}: set train.device to cpu or cuda", who(0),
                    devices_.front().text(), who(rank), devices_[rank].text()));
  }
}

void Comparison::refuse_unless_shared(const std::string& what) const {
  if (!config_.train.share_device) {
    throw ConfigError(fmt::format("{}; train.share_device=true allows it", what));
  }
  if (world_.rank() == 0) {
    warn_(what + " (train.share_device): expect less speed, and other users of the GPU");
  }
}

// Returns, for example, "1 GPU for 2 ranks".
std::string Comparison::numbers_on(const std::string& host) const {
  std::set<std::string> uuids;
  std::int64_t ranks = 0;
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    if (where(rank) == host) {
      uuids.insert(devices_[rank].uuid);
      ++ranks;
    }
  }
  return fmt::format("{} for {}", counted(static_cast<std::int64_t>(uuids.size()), "GPU"),
                     counted(ranks, "rank"));
}

// Slices of one GPU are devices of their own to CUDA, but NCCL sees one GPU.
void Comparison::check_unshared(std::size_t rank) const {
  for (std::size_t other = 0; other < rank; ++other) {
    const bool is_same = devices_[other].uuid == devices_[rank].uuid;
    if (where(other) != where(rank) || devices_[other].bus != devices_[rank].bus) {
      continue;
    }
    if (is_same) {
      refuse_unless_shared(fmt::format(
          "{} and {} have the same CUDA device ({}); the ranks of {} have {}: start one "
          "rank per device",
          who(other), who(rank), devices_[rank].text(), where(rank), numbers_on(where(rank))));
    }
    if (!nccl_shares()) {
      throw ConfigError(
          fmt::format("{} and {} compute on one GPU ({}): start one rank per GPU, or use NCCL 2.30 "
                      "or newer (this is {}) with {} in the environment",
                      who(other), who(rank), devices_[rank].bus, nccl_version(), kNcclShares));
    }
    return;
  }
}

void Comparison::check_whole(std::size_t rank) const {
  if (devices_[rank].is_slice()) {
    refuse_unless_shared(fmt::format("{} computes on a MIG slice ({}): give it a whole GPU",
                                     who(rank), devices_[rank].text()));
  }
}

void Comparison::check_alike(std::size_t rank) const {
  const RankDevice& first = devices_.front();
  const RankDevice& this_one = devices_[rank];
  if (this_one.name == first.name && this_one.multiprocessors == first.multiprocessors &&
      this_one.compute_capability == first.compute_capability) {
    return;
  }
  const std::string what = fmt::format("{} computes on {}, but {} on {}", who(0), first.text(),
                                       who(rank), this_one.text());
  if (config_.reproducibility != "fast") {
    throw ConfigError(fmt::format(
        "{}: unlike GPUs may give other bits, and numerics.reproducibility is {}; ask for nodes of "
        "one kind (sbatch --constraint), or choose fast",
        what, config_.reproducibility));
  }
  if (world_.rank() == 0) {
    warn_(what + ": every step takes as long as on the slowest of them");
  }
}

void Comparison::check_mps() const {
  const std::vector<std::string> folders =
      all_gather_text(world_, devices_.front().is_gpu ? mps_folder() : "");
  for (std::size_t rank = 0; rank < folders.size(); ++rank) {
    if (!folders[rank].empty()) {
      refuse_unless_shared(
          fmt::format("{} runs under CUDA's multi-process service ({}): stop it (echo quit | "
                      "nvidia-cuda-mps-control), or unset CUDA_MPS_PIPE_DIRECTORY",
                      who(rank), folders[rank]));
      return;
    }
  }
}

void Comparison::check_nccl() const {
  if (!devices_.front().is_gpu) {
    return;
  }
  const std::vector<std::string> versions = all_gather_text(world_, nccl_version());
  for (std::size_t rank = 0; rank < versions.size(); ++rank) {
    if (versions[rank] != versions.front()) {
      throw ConfigError(fmt::format(
          "{} has {}, but {} has {}: versions of NCCL do not understand each other; install the "
          "same on all nodes, and check LD_LIBRARY_PATH there",
          who(0), versions.front(), who(rank), versions[rank]));
    }
  }
  if (nccl_version_code() < kOldestNccl) {
    throw ConfigError(
        fmt::format("all nodes have {}, but this program needs NCCL 2.22 or newer: install it, and "
                    "check LD_LIBRARY_PATH there",
                    versions.front()));
  }
}

}  // namespace

std::vector<RankDevice> agree_on_devices(const RunConfig& config,
                                         const std::vector<RankPlace>& places, Communicator& world,
                                         const std::function<void(const std::string&)>& warn,
                                         const std::function<void(const std::string&)>& in_use) {
  const Sight sight = look_around(config.train.device);
  std::string fault = sight.fault;
  const Device chosen = share_out(sight, places, world, config.train.share_device, fault);
  if (fault.empty()) {
    fault = connection_fault(chosen, config.train.device);
  }
  check_all_have_devices(fault, sight.is_device_fault, world);
  const std::string uuid =
      chosen.kind == DeviceKind::cuda ? sight.uuids.at(static_cast<std::size_t>(chosen.index)) : "";
  const std::vector<std::string> users =
      all_gather_text(world, uuid.empty() ? "" : users_of_gpu(uuid));
  Refusal refusal;
  const RankDevice own = use_device(chosen, refusal);
  explain(refusal, uuid, users[static_cast<std::size_t>(world.rank())]);
  check_all_can_use_theirs(refusal, world);
  std::vector<RankDevice> devices;
  for (const std::string& text : all_gather_text(world, to_json(own).dump())) {
    devices.push_back(rank_device_from_json(parse_json(text)));
  }
  Comparison(config, devices, world, warn).run();
  for (std::size_t rank = 0; in_use && world.rank() == 0 && rank < users.size(); ++rank) {
    if (!users[rank].empty()) {
      in_use(fmt::format(
          "{} shares its GPU ({}): {}: expect less speed, and less memory than was "
          "predicted; end what uses it, or take another node",
          world.members().describe(static_cast<int>(rank)), devices[rank].text(), users[rank]));
    }
  }
  return devices;
}

}  // namespace trireme
