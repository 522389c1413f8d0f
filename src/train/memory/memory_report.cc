#include "src/train/memory/memory_report.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/memory/node_memory.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/device/cuda_device.h"
#include "src/device/nvml/gpu_monitor.h"
#include "src/train/engine/train_step.h"
#include "src/train/memory/available_memory.h"
#include "src/train/memory/memory_advice.h"

namespace trireme {

std::int64_t shared_resident_bytes() {
  std::ifstream file("/proc/self/status");
  for (std::string name; file >> name;) {
    std::int64_t kib = 0;
    if (name == "RssShmem:" && file >> kib) {
      return kib * 1024;
    }
  }
  return 0;
}

namespace {

// Gathers the same number of values from every rank, in the order of the ranks.
std::vector<std::int64_t> gather_numbers(Communicator& world,
                                         const std::vector<std::int64_t>& own) {
  std::vector<std::int64_t> all(own.size() * static_cast<std::size_t>(world.size()), 0);
  std::copy(own.begin(), own.end(),
            all.begin() + static_cast<std::ptrdiff_t>(own.size()) * world.rank());
  world.all_gather({all.data(), static_cast<std::int64_t>(all.size()), DType::i64}).wait();
  return all;
}

std::vector<MemoryPlan> gather_plans(Communicator& world, const MemoryPlan& own) {
  const auto parts = own.parts();
  const std::vector<std::int64_t> all = gather_numbers(world, {parts.begin(), parts.end()});
  std::vector<MemoryPlan> plans;
  for (auto at = all.begin(); at != all.end(); at += MemoryPlan::kParts) {
    auto of_rank = parts;
    std::copy_n(at, MemoryPlan::kParts, of_rank.begin());
    plans.push_back(MemoryPlan::of(of_rank));
  }
  return plans;
}

// Gathers the bytes that checkpoints occupy in each node folder, and counts each folder once: the
// nodes of a launch may share a host, and ranks share a node.
std::vector<std::int64_t> gather_held(Communicator& world, const std::vector<RankPlace>& places) {
  const NodeMemory node = NodeMemory::from_environment();
  std::vector<std::int64_t> held = gather_numbers(world, {held_bytes(node)});
  const std::vector<std::string> folders = all_gather_text(world, node.folder.string());
  std::set<std::pair<std::string, std::string>> seen;
  for (const RankPlace& place : places) {
    const auto rank = static_cast<std::size_t>(place.rank);
    if (!seen.emplace(place.host, folders[rank]).second) {
      held[rank] = 0;
    }
  }
  return held;
}

// Gathers the memory of each host, as the rank that finds the least sees it. Called before any rank
// allocates.
std::vector<HostShare> gather_hosts(Communicator& world, const std::vector<RankPlace>& places) {
  const AvailableMemory here = available_memory();
  const std::vector<std::int64_t> available = gather_numbers(world, {here.bytes});
  const std::vector<std::string> sources = all_gather_text(world, here.source);
  const std::vector<std::int64_t> held = gather_held(world, places);
  std::vector<HostShare> hosts;
  for (const RankPlace& place : places) {
    auto host = std::find_if(hosts.begin(), hosts.end(), [&](const HostShare& known) {
      return known.host == "host " + place.host;
    });
    const auto rank = static_cast<std::size_t>(place.rank);
    if (host == hosts.end()) {
      host =
          hosts.insert(hosts.end(), {"host " + place.host, {}, available[rank], sources[rank], 0});
    } else if (available[rank] < host->available) {
      host->available = available[rank];
      host->source = sources[rank];
    }
    host->ranks.push_back(place.rank);
    host->held += held[rank];
  }
  return hosts;
}

nlohmann::json to_json(const std::vector<MemoryPlan>& ranks) {
  nlohmann::json json = nlohmann::json::array();
  for (const MemoryPlan& plan : ranks) {
    json.push_back(trireme::to_json(plan));
  }
  return json;
}

std::vector<double> ratios(const std::vector<MemoryPlan>& measured,
                           const std::vector<MemoryPlan>& predicted) {
  std::vector<double> all;
  for (std::size_t rank = 0; rank < measured.size(); ++rank) {
    const auto total = static_cast<double>(predicted[rank].total());
    all.push_back(total == 0 ? 0 : static_cast<double>(measured[rank].total()) / total);
  }
  return all;
}

std::int64_t most_of(const std::vector<MemoryPlan>& ranks) {
  std::int64_t most = 0;
  for (const MemoryPlan& rank : ranks) {
    most = std::max(most, rank.total());
  }
  return most;
}

void show_measured(const char* title, const std::vector<MemoryPlan>& measured,
                   const std::vector<MemoryPlan>& predicted, Log& log) {
  const MemoryTable table = memory_table(measured);
  log.table(fmt::format("{}, in {}:", title, table.unit), table.lines);
  const std::vector<double> all = ratios(measured, predicted);
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  log.info(fmt::format("measured over predicted memory: {:.3f} to {:.3f}", *least, *most));
}

}  // namespace

MemoryReport::MemoryReport(const RunConfig& config, const Layout& layout,
                           const std::vector<RankPlace>& places, Communicator& world, Device device)
    : world_(world), device_(device) {
  if (device.kind == DeviceKind::cuda) {
    check_devices(config, layout, places);
  }
  const MemoryPlace place =
      device.kind == DeviceKind::cuda ? MemoryPlace::host_of_device : MemoryPlace::host;
  const std::int64_t resident = resident_bytes() - shared_resident_bytes();
  predicted_ = gather_plans(world, plan_memory(config, layout, world.rank(), resident, place));
  const std::vector<std::int64_t> at_start = gather_numbers(world, {resident});
  const std::vector<HostShare> hosts = gather_hosts(world, places);
  if (config.memory_check == "off") {
    return;
  }
  run_on_root(world, [&] {
    if (const auto fault = memory_fault(config, layout, hosts, predicted_, at_start, place)) {
      throw ConfigError(*fault);
    }
    return std::string();
  });
}

// The memory that the process already has on its device, such as CUDA's own, does not count as
// free.
void MemoryReport::check_devices(const RunConfig& config, const Layout& layout,
                                 const std::vector<RankPlace>& places) {
  free_at_start_ = cuda::device_facts(device_.index).free_bytes;
  on_devices_ =
      gather_plans(world_, plan_memory(config, layout, world_.rank(), 0, MemoryPlace::device));
  const std::vector<std::int64_t> all = gather_numbers(world_, {free_at_start_, device_.index});
  if (config.memory_check == "off") {
    return;
  }
  // Ranks that share a GPU (train.share_device) need the sum of their parts of it.
  const std::vector<std::string> uuids =
      all_gather_text(world_, cuda::device_identity(device_.index).uuid);
  std::map<std::pair<std::string, std::string>, std::size_t> share_of;
  std::vector<HostShare> devices;
  for (int rank = 0; rank < world_.size(); ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    const auto [share, is_new] = share_of.try_emplace({places[at].host, uuids[at]}, devices.size());
    if (is_new) {
      devices.push_back({fmt::format("CUDA device {} of host {}", all[2 * at + 1], places[at].host),
                         {},
                         all[2 * at],
                         "not in use by any process",
                         0});
    }
    HostShare& device = devices[share->second];
    device.ranks.push_back(rank);
    device.available = std::min(device.available, all[2 * at]);
  }
  const std::vector<std::int64_t> nothing(places.size(), 0);
  run_on_root(world_, [&] {
    if (const auto fault =
            memory_fault(config, layout, devices, on_devices_, nothing, MemoryPlace::device)) {
      throw ConfigError(*fault);
    }
    return std::string();
  });
}

void MemoryReport::log_predicted(Log& log) const {
  if (world_.rank() != 0) {
    return;
  }
  nlohmann::json fields = {{"ranks", to_json(predicted_)}};
  if (!on_devices_.empty()) {
    const MemoryTable devices = memory_table(on_devices_);
    log.table(fmt::format("predicted memory of each rank's device, in {}:", devices.unit),
              devices.lines);
    fields["devices"] = to_json(on_devices_);
  }
  const MemoryTable table = memory_table(predicted_);
  log.table(fmt::format("predicted memory{} per rank, in {}:",
                        on_devices_.empty() ? "" : " of the hosts", table.unit),
            table.lines);
  log.event("memory_predicted", fields);
}

void MemoryReport::note_device_use() {
  if (device_.kind == DeviceKind::cuda) {
    noted_use_ =
        std::max(noted_use_, free_at_start_ - cuda::device_facts(device_.index).free_bytes);
  }
}

MemoryPlan MemoryReport::measured_on_device(const StepMemory& step) const {
  MemoryPlan own = plan_of_step(step);
  const std::int64_t used = free_at_start_ - cuda::device_facts(device_.index).free_bytes;
  own.program = std::max(used, noted_use_) - own.total();
  return own;
}

// Returns whether other processes use the device, as far as the driver shows them.
bool MemoryReport::is_device_shared() const {
  if (device_.kind != DeviceKind::cuda) {
    return false;
  }
  const auto monitor = GpuMonitor::open(cuda::management_library());
  if (monitor == nullptr) {
    return false;
  }
  std::vector<GpuState> gpus = monitor->gpus();
  const auto own = std::find_if(gpus.begin(), gpus.end(), [&](const GpuState& gpu) {
    return gpu.uuid == cuda::device_identity(device_.index).uuid;
  });
  if (own == gpus.end()) {
    return false;
  }
  leave_out(::getpid(), *own);
  return !own->processes.empty();
}

MemoryPlan MemoryReport::measured_on_host(const Engine& engine, const StepMemory& step,
                                          const SnapshotMemory& snapshots) const {
  const bool on_device = device_.kind == DeviceKind::cuda;
  MemoryPlan own = on_device ? MemoryPlan() : plan_of_step(step);
  own.snapshot = snapshots.bytes;
  const bool maps_own = !on_device && &world_.memory() != &host_memory();
  const std::int64_t resident = peak_resident_bytes() - shared_resident_bytes() +
                                snapshots.shared_bytes + (maps_own ? engine.shared_bytes() : 0);
  own.program = resident - own.total();
  return own;
}

std::pair<std::int64_t, std::int64_t> MemoryReport::log_measured(const Engine& engine,
                                                                 const SnapshotMemory& snapshots,
                                                                 Log& log) const {
  const StepMemory step = taken_memory(engine);
  const std::vector<MemoryPlan> on_hosts =
      gather_plans(world_, measured_on_host(engine, step, snapshots));
  std::pair most = {most_of(predicted_), most_of(on_hosts)};
  nlohmann::json fields = {{"ranks", to_json(on_hosts)},
                           {"over_predicted", ratios(on_hosts, predicted_)}};
  if (!on_devices_.empty() &&
      all_reduce_value(world_, std::int64_t{is_device_shared() ? 1 : 0}, ReduceOp::max) > 0) {
    most = {most_of(on_devices_), 0};
    if (world_.rank() == 0) {
      log.info("the memory of GPUs was not measured, because others use some of them, too");
    }
  } else if (!on_devices_.empty()) {
    const std::vector<MemoryPlan> on_devices = gather_plans(world_, measured_on_device(step));
    most = {most_of(on_devices_), most_of(on_devices)};
    fields["devices"] = to_json(on_devices);
    fields["devices_over_predicted"] = ratios(on_devices, on_devices_);
    if (world_.rank() == 0) {
      show_measured("peak memory of each rank's device", on_devices, on_devices_, log);
    }
  }
  if (world_.rank() == 0) {
    show_measured("peak resident memory per rank", on_hosts, predicted_, log);
    log.event("memory_measured", fields);
  }
  return most;
}

}  // namespace trireme
