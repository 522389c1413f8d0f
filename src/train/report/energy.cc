#include "src/train/report/energy.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "src/device/cuda_device.h"

namespace trireme {
namespace {

std::optional<std::int64_t> microjoules_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value && value >= 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

ProcessorEnergy::ProcessorEnergy(const std::filesystem::path& root) {
  std::error_code error;
  is_readable_ = true;
  for (std::filesystem::directory_iterator at(root / "sys/class/powercap", error), end;
       !error && at != end; at.increment(error)) {
    std::ifstream file(at->path() / "name");
    std::string name;
    file >> name;
    if (!name.starts_with("package-")) {
      continue;  // a part of a package, or of the whole platform
    }
    Package package{at->path() / "energy_uj"};
    const auto range = microjoules_in(at->path() / "max_energy_range_uj");
    const auto now = microjoules_in(package.counter);
    is_readable_ = is_readable_ && range && now;
    package.range = range.value_or(0);
    package.last = now.value_or(0);
    packages_.push_back(package);
  }
}

std::optional<double> ProcessorEnergy::joules() {
  double joules = 0;
  for (Package& package : packages_) {
    const auto now = microjoules_in(package.counter);
    is_readable_ = is_readable_ && now.has_value();
    if (is_readable_) {
      package.used += *now - package.last + (*now < package.last ? package.range : 0);
      package.last = *now;
      joules += 1e-6 * static_cast<double>(package.used);
    }
  }
  return is_readable_ && !packages_.empty() ? std::optional(joules) : std::nullopt;
}

// The totals that this rank counts. A rank that has nothing to count can read it.
struct RunEnergy::Reading {
  double gpu = 0;
  double cpu = 0;
  bool gpu_is_readable = true;
  bool cpu_is_readable = true;
};

RunEnergy::RunEnergy(Communicator& world, const std::vector<RankDevice>* devices,
                     const std::vector<RankPlace>& places, const std::filesystem::path& root)
    : world_(world) {
  const auto me = static_cast<std::size_t>(world.rank());
  const auto is_first = [&](const auto& same) {
    for (std::size_t rank = 0; rank < me; ++rank) {
      if (places[rank].host == places[me].host && same(rank)) {
        return false;
      }
    }
    return true;
  };
  counts_host_ = is_first([](std::size_t) { return true; });
  if (counts_host_) {
    processors_.emplace(root);
  }
  if (devices != nullptr && (*devices)[me].is_gpu) {
    counts_gpu_ =
        is_first([&](std::size_t rank) { return (*devices)[rank].bus == (*devices)[me].bus; });
    monitor_ = counts_gpu_ ? GpuMonitor::open(cuda::management_library()) : nullptr;
    uuid_ = (*devices)[me].is_slice() ? "" : (*devices)[me].uuid;
  }
  const Reading now = read();
  last_gpu_ = now.gpu;
  last_cpu_ = now.cpu;
  const bool has_value =
      (counts_gpu_ && now.gpu_is_readable) || (counts_host_ && now.cpu_is_readable);
  is_readable_ = all_reduce_value(world, std::int64_t{has_value ? 1 : 0}, ReduceOp::max) > 0;
}

RunEnergy::~RunEnergy() = default;

RunEnergy::Reading RunEnergy::read() {
  Reading now;
  if (counts_gpu_) {
    const std::optional<double> joules =
        monitor_ == nullptr || uuid_.empty() ? std::nullopt : monitor_->energy_joules(uuid_);
    now.gpu = joules.value_or(0);
    now.gpu_is_readable = joules.has_value();
  }
  if (counts_host_) {
    const std::optional<double> joules = processors_->joules();
    now.cpu = joules.value_or(0);
    now.cpu_is_readable = joules.has_value();
  }
  return now;
}

void RunEnergy::note_step() {
  if (processors_ && is_readable_) {
    (void)processors_->joules();
  }
}

void RunEnergy::add_to(StepMetrics& metrics, std::int64_t steps, std::int64_t tokens) {
  if (!is_readable_ || steps <= 0) {
    return;
  }
  const Reading now = read();
  const bool went_back = now.gpu < last_gpu_;  // the driver was loaded anew
  std::array<double, 5> sums = {now.gpu - last_gpu_, now.cpu - last_cpu_,
                                now.gpu_is_readable && !went_back ? 0.0 : 1.0,
                                now.cpu_is_readable ? 0.0 : 1.0, counts_gpu_ ? 1.0 : 0.0};
  last_gpu_ = now.gpu;
  last_cpu_ = now.cpu;
  world_
      .all_reduce({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64}, ReduceOp::sum)
      .wait();
  metrics.step_tokens = static_cast<double>(tokens) / static_cast<double>(steps);
  if (sums[2] == 0 && sums[4] > 0) {
    metrics.gpu_joules = sums[0] / static_cast<double>(steps);
  }
  if (sums[3] == 0) {
    metrics.cpu_joules = sums[1] / static_cast<double>(steps);
  }
}

}  // namespace trireme
