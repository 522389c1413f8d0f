// RunEnergy counts the joules that a run uses: those of its GPUs as NVIDIA's driver counts them
// (NVML), and those of its hosts' processors as the kernel shows them (RAPL, in
// /sys/class/powercap). What cannot be read everywhere is not reported: a sum that lacks a part
// would be a guess. Used by the main thread; add_to(), used() and the constructor are collective.
#pragma once

#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "mpi/topology.h"
#include "src/base/stopwatch.h"
#include "src/device/nvml/gpu_monitor.h"
#include "src/train/report/metrics.h"
#include "src/train/run/energy_used.h"
#include "src/train/run/rank_device.h"

namespace trireme {

// ProcessorEnergy reads the energy of a host's processor packages.
class ProcessorEnergy {
 public:
  // root: the folder that contains sys.
  explicit ProcessorEnergy(const std::filesystem::path& root = "/");
  // Returns the joules since the object was made; nothing if a package cannot be read or there is
  // none. The counters start again at 0 every few minutes, so call it more often than that.
  std::optional<double> joules();
  // Returns why they are not known, or "".
  const std::string& complaint() const { return complaint_; }

 private:
  struct Package {
    std::filesystem::path counter;
    std::int64_t range = 0;  // microjoules at which the counter starts again
    std::int64_t last = 0;
    std::int64_t used = 0;
  };
  // Returns the microjoules in a file; otherwise notes a complaint.
  std::optional<std::int64_t> read(const std::filesystem::path& path);

  std::vector<Package> packages_;
  std::string complaint_;
};

// PowerWindow is the mean power over at least kLeast, because drivers of GPUs advance their
// counters about ten times a second: over shorter times, differences are 0 or too large.
class PowerWindow {
 public:
  static constexpr double kLeast = 1;  // seconds

  // Adds what was used since the last call, or since begin().
  void add(double joules, double seconds);
  void begin() { *this = PowerWindow(); }
  // Returns the power in the last whole window; nothing before the first one has ended.
  std::optional<double> watts() const { return watts_; }

 private:
  double joules_ = 0;
  double seconds_ = 0;
  std::optional<double> watts_;
};

class RunEnergy {
 public:
  // devices: of all ranks; null if they compute on the CPU. Each GPU counts once, on the first rank
  // that has it; the processors of a host count on its first rank. root: as ProcessorEnergy.
  RunEnergy(Communicator& world, const std::vector<RankDevice>* devices,
            const std::vector<RankPlace>& places, const std::filesystem::path& root = "/");
  ~RunEnergy();
  RunEnergy(const RunEnergy&) = delete;
  RunEnergy& operator=(const RunEnergy&) = delete;

  // Returns which counters of the run cannot be read and why, or "". The same on all ranks.
  const std::string& complaint() const { return complaint_; }

  // Begins what add_to() counts anew, such as before the first step.
  void begin_steps();
  // Starts reading the GPU's counter in another thread: its driver takes milliseconds. The next
  // add_to() counts up to this reading. Call it while the GPU has work; it is not needed.
  void start_reading();
  // Call after each step, so that no counter starts again unnoticed.
  void note_step();
  // Call before and after each part of a save that stalls training; only end_save(true) counts it
  // as a save of its own. All ranks count alike.
  void begin_save();
  void end_save(bool counts);
  // Sets what the whole run has used per step and token since the last call, the same on all ranks;
  // that of GPUs by their mean power in the last window.
  void add_to(StepMetrics& metrics, std::int64_t steps, std::int64_t tokens);
  // Returns what the whole run has used since the object was made, the same on all ranks. Within a
  // save, the GPUs' energy is that at begin_save().
  EnergyUsed used();

 private:
  struct Reading;
  using GpuReading = std::shared_future<std::optional<double>>;
  struct SaveReadings {
    GpuReading before;
    GpuReading after;
  };
  std::optional<double> read_gpu() const;
  GpuReading start_gpu() const;
  // gpu: what the GPU's counter showed before; empty to read it now.
  Reading read(const GpuReading& gpu = {});
  // Notes whether the GPU's counter began again, because its driver was loaded anew.
  void compare_gpu(const Reading& now);
  double gpu_joules_of_saves();
  void note_complaints(const Reading& now);

  Communicator& world_;
  bool has_gpus_ = false;  // whether any rank has one
  bool counts_gpu_ = false;
  bool counts_host_ = false;
  bool is_readable_ = true;  // whether any rank reads anything
  std::string uuid_;         // empty for a slice, whose energy is not known
  std::unique_ptr<GpuMonitor> monitor_;
  std::optional<ProcessorEnergy> processors_;
  std::string complaint_;
  GpuReading started_;  // by start_reading()
  // Since the constructor.
  std::string begun_;
  double first_gpu_ = 0;
  bool is_gpu_whole_ = true;  // whether this rank's GPU was readable then and its counter went on
  // Since begin_steps() or add_to() has last read the counters.
  Stopwatch since_;
  double last_gpu_ = 0;
  double last_cpu_ = 0;
  double before_save_cpu_ = 0;
  PowerWindow gpu_power_;                   // of all ranks
  std::vector<SaveReadings> gpu_in_saves_;  // since add_to()
  double save_cpu_ = 0;                     // joules of this rank in saves since add_to()
  std::int64_t saves_ = 0;
};

}  // namespace trireme
