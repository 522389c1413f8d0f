#include "src/train/report/energy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "src/base/clock.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"

namespace trireme {

std::optional<std::int64_t> ProcessorEnergy::read(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path);
  std::int64_t value = 0;
  if (file >> value && value >= 0) {
    return value;
  }
  if (complaint_.empty()) {
    const std::string reason = file.is_open() || errno == 0
                                   ? "it holds no number"
                                   : std::generic_category().message(errno);
    complaint_ = fmt::format("cannot read {}: {}", path.string(), reason);
  }
  return std::nullopt;
}

ProcessorEnergy::ProcessorEnergy(const std::filesystem::path& root) {
  std::error_code error;
  const std::filesystem::path folder = root / "sys/class/powercap";
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::ifstream file(at->path() / "name");
    std::string name;
    file >> name;
    if (!name.starts_with("package-")) {
      continue;  // a part of a package, or of the whole platform
    }
    Package package{at->path() / "energy_uj"};
    const auto range = read(at->path() / "max_energy_range_uj");
    const auto now = read(package.counter);
    package.range = range.value_or(0);
    package.last = now.value_or(0);
    packages_.push_back(package);
  }
  if (packages_.empty()) {
    complaint_ = fmt::format(
        "{} has no zone of a processor package: the processor, the kernel or a hypervisor offers "
        "no RAPL",
        folder.string());
  }
}

std::optional<double> ProcessorEnergy::joules() {
  double joules = 0;
  for (Package& package : packages_) {
    const auto now = read(package.counter);
    if (now && complaint_.empty()) {
      package.used += *now - package.last + (*now < package.last ? package.range : 0);
      package.last = *now;
      joules += 1e-6 * static_cast<double>(package.used);
    }
  }
  return complaint_.empty() ? std::optional(joules) : std::nullopt;
}

void PowerWindow::add(double joules, double seconds) {
  joules_ += joules;
  seconds_ += seconds;
  if (seconds_ >= kLeast) {
    watts_ = std::exchange(joules_, 0) / std::exchange(seconds_, 0);
  }
}

namespace {

std::optional<double> per_save(double joules, std::int64_t saves) {
  return saves > 0 ? std::optional(joules / static_cast<double>(saves)) : std::nullopt;
}

}  // namespace

// Reading holds the totals that this rank counts. They are readable if it has nothing to count.
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
  has_gpus_ =
      devices != nullptr && std::any_of(devices->begin(), devices->end(),
                                        [](const RankDevice& device) { return device.is_gpu; });
  const Reading now = read();
  begun_ = utc_now();
  first_gpu_ = now.gpu;
  is_gpu_whole_ = now.gpu_is_readable;
  since_ = Stopwatch();
  last_gpu_ = now.gpu;
  last_cpu_ = now.cpu;
  const bool has_value =
      (counts_gpu_ && now.gpu_is_readable) || (counts_host_ && now.cpu_is_readable);
  is_readable_ = all_reduce_value(world, std::int64_t{has_value ? 1 : 0}, ReduceOp::max) > 0;
  note_complaints(now);
}

void RunEnergy::note_complaints(const Reading& now) {
  std::string own;
  if (counts_host_ && !now.cpu_is_readable) {
    own = fmt::format("processors of {}: {}", world_.host(world_.rank()), processors_->complaint());
  }
  if (counts_gpu_ && (!now.gpu_is_readable || !is_gpu_whole_)) {
    own += fmt::format("{}GPU of rank {}: {}", own.empty() ? "" : "; ", world_.rank(),
                       monitor_ == nullptr ? "NVIDIA's management library cannot be used"
                       : uuid_.empty()     ? "a MIG slice shares its counter with others"
                       : now.gpu_is_readable
                           ? "its counter began again, because the driver was loaded anew"
                           : "its driver does not count energy");
  }
  std::int64_t further = 0;
  for (const std::string& each : all_gather_text(world_, own)) {
    further += each.empty() || complaint_.empty() ? 0 : 1;
    complaint_ = complaint_.empty() ? each : complaint_;
  }
  if (further > 0) {
    complaint_ += fmt::format("; and {} like it", counted(further, "rank"));
  }
}

RunEnergy::~RunEnergy() = default;

std::optional<double> RunEnergy::read_gpu() const {
  return monitor_ == nullptr || uuid_.empty() ? std::nullopt : monitor_->energy_joules(uuid_);
}

RunEnergy::GpuReading RunEnergy::start_gpu() const {
  return std::async(std::launch::async, [this] { return read_gpu(); });
}

void RunEnergy::start_reading() {
  if (counts_gpu_ && is_readable_ && !started_.valid()) {
    started_ = start_gpu();
  }
}

void RunEnergy::compare_gpu(const Reading& now) {
  is_gpu_whole_ = is_gpu_whole_ && (!now.gpu_is_readable || now.gpu >= last_gpu_);
}

void RunEnergy::begin_steps() {
  if (!is_readable_) {
    return;
  }
  const Reading now = read();
  compare_gpu(now);
  since_ = Stopwatch();
  last_gpu_ = now.gpu;
  last_cpu_ = now.cpu;
  gpu_power_.begin();
}

RunEnergy::Reading RunEnergy::read(const GpuReading& gpu) {
  Reading now;
  if (counts_gpu_) {
    const std::optional<double> joules = gpu.valid() ? gpu.get() : read_gpu();
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

// The GPU's counter is read in another thread, because a save is to stall training as shortly as it
// can; add_to() takes the readings.
void RunEnergy::begin_save() {
  if (is_readable_ && counts_gpu_) {
    gpu_in_saves_.push_back({start_gpu(), {}});
  }
  if (is_readable_ && counts_host_) {
    before_save_cpu_ = processors_->joules().value_or(0);
  }
}

void RunEnergy::end_save(bool counts) {
  saves_ += counts ? 1 : 0;
  if (is_readable_ && counts_gpu_) {
    gpu_in_saves_.back().after = start_gpu();
  }
  if (is_readable_ && counts_host_) {
    save_cpu_ += std::max(processors_->joules().value_or(0) - before_save_cpu_, 0.0);
  }
}

// Returns the joules of this rank's GPU in the saves since add_to().
double RunEnergy::gpu_joules_of_saves() {
  double joules = 0;
  for (SaveReadings& save : gpu_in_saves_) {
    const double before = save.before.get().value_or(0);
    joules += std::max(save.after.get().value_or(0) - before, 0.0);
  }
  gpu_in_saves_.clear();
  return joules;
}

void RunEnergy::add_to(StepMetrics& metrics, std::int64_t steps, std::int64_t tokens) {
  metrics.saves = std::exchange(saves_, 0);
  if (!is_readable_ || steps <= 0) {
    return;
  }
  const Reading now = read(std::exchange(started_, {}));
  const double seconds = std::exchange(since_, Stopwatch()).seconds();
  const bool went_back = now.gpu < last_gpu_;  // the driver was loaded anew
  compare_gpu(now);
  std::array<double, 8> sums = {now.gpu - last_gpu_,
                                now.cpu - last_cpu_,
                                now.gpu_is_readable && !went_back ? 0.0 : 1.0,
                                now.cpu_is_readable ? 0.0 : 1.0,
                                counts_gpu_ ? 1.0 : 0.0,
                                gpu_joules_of_saves(),
                                std::exchange(save_cpu_, 0),
                                world_.rank() == 0 ? seconds : 0.0};
  last_gpu_ = now.gpu;
  last_cpu_ = now.cpu;
  world_
      .all_reduce({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64}, ReduceOp::sum)
      .wait();
  metrics.step_tokens = static_cast<double>(tokens) / static_cast<double>(steps);
  metrics.energy_seconds = sums[7] / static_cast<double>(steps);
  if (sums[2] != 0) {
    gpu_power_.begin();
  } else if (sums[4] > 0) {
    gpu_power_.add(sums[0], sums[7]);
    if (gpu_power_.watts()) {
      metrics.gpu_joules = *gpu_power_.watts() * sums[7] / static_cast<double>(steps);
    }
    metrics.gpu_save_joules = per_save(sums[5], metrics.saves);
  }
  if (sums[3] == 0) {
    metrics.cpu_joules = sums[1] / static_cast<double>(steps);
    metrics.cpu_save_joules = per_save(sums[6], metrics.saves);
  }
}

EnergyUsed RunEnergy::used() {
  EnergyUsed energy;
  energy.since = begun_;
  energy.has_gpus = has_gpus_;
  if (is_readable_) {
    const bool in_save = !gpu_in_saves_.empty() && !gpu_in_saves_.back().after.valid();
    const Reading now = read(in_save ? gpu_in_saves_.back().before : GpuReading());
    compare_gpu(now);
    std::array<double, 4> sums = {
        now.gpu - first_gpu_, now.cpu,
        now.gpu_is_readable && (!counts_gpu_ || is_gpu_whole_) ? 0.0 : 1.0,
        now.cpu_is_readable ? 0.0 : 1.0};
    world_
        .all_reduce({sums.data(), static_cast<std::int64_t>(sums.size()), DType::f64},
                    ReduceOp::sum)
        .wait();
    energy.gpu_joules = has_gpus_ && sums[2] == 0 ? std::optional(sums[0]) : std::nullopt;
    energy.cpu_joules = sums[3] == 0 ? std::optional(sums[1]) : std::nullopt;
    if (complaint_.empty() && (sums[2] > 0 || sums[3] > 0)) {
      note_complaints(now);
    }
  }
  energy.unknown = complaint_;
  return energy;
}

}  // namespace trireme
