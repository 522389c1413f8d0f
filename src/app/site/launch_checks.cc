#include "src/app/site/launch_checks.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset.h"
#include "slurm/doctor/node_checks.h"
#include "src/app/command/version.h"
#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/compute/compute_threads.h"
#include "src/compute/device_context.h"
#include "src/compute/kernel_choice.h"
#include "src/kernels/instructions.h"
#include "src/nn/model_slice.h"
#include "src/train/memory/memory_report.h"
#include "src/train/numerics/self_check.h"
#include "src/train/start/open_dataset.h"
#include "src/train/start/space_forecast.h"
#include "src/train/watch/shared_clock.h"

namespace trireme {
namespace {

// Network file systems may show a new file to other hosts a few seconds late.
constexpr std::chrono::seconds kVisibleWithin{5};
constexpr std::chrono::milliseconds kBetweenLooks{100};

void check_dataset(const char* key, const std::filesystem::path& folder, const RunConfig& config,
                   const std::string& host, std::vector<Finding>& found) {
  if (folder.empty()) {
    return;
  }
  try {
    const Dataset dataset = Dataset::open(folder);
    (void)dataset.samples(config.data.sequence);
    check_vocabulary(dataset, config.model.vocab);
  } catch (const Error& error) {
    found.push_back(error_of(error, host));
    found.back().what = fmt::format("{}: {}", key, found.back().what);
    if (error.exit_code() != ExitCode::usage) {
      found.back().remedy = fmt::format("see `trireme data verify {}`", folder.string());
    }
  }
}

// Reports an error if the newest checkpoints do not fit, and a warning if the quota or milestones
// need more space.
std::vector<Finding> check_checkpoint_folder(const RunConfig& config, const std::string& host) {
  const SpaceForecast space = measured_space(config);
  std::vector<Finding> found = check_folder(
      "checkpoint.dir", config.checkpoint_dir(),
      std::max(space.checkpoint_bytes, space.newest * space.checkpoint_bytes - space.stored_bytes),
      host);
  const std::string lack = space.lack(config.checkpoint_dir().string());
  if (found.empty() && !lack.empty()) {
    found.push_back(warning_of(lack, host, ""));
  }
  return found;
}

// Checks that the checkpoints from which the run may resume can be read. A start from a given step
// does not look at others.
void check_checkpoints(const RunConfig& config, const std::string& host,
                       std::vector<Finding>& found) {
  const IntegerOrWord& resume = config.checkpoint.resume;
  try {
    for (const StepFolder& step : list_steps(config.checkpoint_dir())) {
      if (!resume.word.empty() || step.path.filename() == step_folder_name(resume.integer)) {
        check_readable(step);
      }
    }
  } catch (const PolicyError& error) {
    found.push_back(error_of(error, host));
    found.back().what = fmt::format("checkpoint.dir: {}", found.back().what);
  } catch (const Error&) {
    // The check of the folder reports what is wrong with it, and a start skips damaged steps.
  }
}

// Returns the seconds by which the wall clock is ahead of the steady clock.
double wall_less_steady() {
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  const auto steady = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(wall).count() -
         std::chrono::duration<double>(steady).count();
}

std::string build_text() {
  const auto version = version_json();
  std::string digest = "unknown";
  try {
    const std::string program = read_file("/proc/self/exe");
    digest = hex64(xxh3(program.data(), static_cast<std::int64_t>(program.size())));
  } catch (const Error&) {
    // Without /proc, version and commit are all that is known.
  }
  return fmt::format("{} {} {}", version.at("version").get<std::string>(),
                     version.at("commit").get<std::string>(), digest);
}

}  // namespace

std::vector<Finding> LaunchChecks::host(const PlannedRanks& planned) const {
  std::vector<Finding> found;
  if (own().local_rank != 0) {
    return found;
  }
  const std::string& host = own().host;
  const std::vector<std::string> devices = host_shape().network_devices;
  const bool rdma = std::any_of(devices.begin(), devices.end(), [](const std::string& device) {
    return device.find("OpenFabrics") != std::string::npos;
  });
  append(found, check_limits(process_limits(), std::max(world_.size(), planned.world), rdma, host));
  append(found,
         check_shared_memory("/dev/shm", 0, std::max(own().local_size, planned.per_host), host));
  if (config_.checkpoint.uses_memory()) {
    append(found, check_logind("/", ::getuid(), host));
  }
  append(found, check_folder("run.dir", config_.run_dir, 0, host));
  append(found, check_checkpoint_folder(config_, host));
  check_checkpoints(config_, host, found);
  check_dataset("data.train", config_.data.train, config_, host, found);
  check_dataset("data.validation", config_.data.validation, config_, host, found);
  return found;
}

std::vector<Finding> LaunchChecks::numbers() const {
  std::vector<Finding> found;
  const int tp = config_.parallel.tp.is("auto") ? 1 : static_cast<int>(config_.parallel.tp.integer);
  try {
    const ComputeThreads threads = measure_compute_threads(own_threads());
    for (const std::string& warning : threads.warnings) {
      found.push_back(warning_of(warning, own().host, ""));
    }
    if (config_.self_check) {
      DeviceContext context(default_device(), threads.threads);
      // If the degree is impossible, another check reports it.
      check_kernels(context,
                    kernel_shapes(config_, tensor_degree_works(config_.model, tp) ? tp : 1));
    }
  } catch (const Error& error) {
    found.push_back(error_of(error, own().host));
  }
  return found;
}

int LaunchChecks::own_threads() const {
  const IntegerOrWord& threads = config_.train.threads;
  return threads.is("auto") ? own().threads() : static_cast<int>(threads.integer);
}

RankFacts LaunchChecks::facts(const std::string& mpi_version) const {
  const RankPlace& place = own();
  RankFacts facts;
  facts.host = place.host;
  facts.build = build_text();
  facts.mpi = mpi_version;
  facts.kernels = kernels_text(kernels_for(default_device()).name);
  // This is the distance of this host's wall clock from rank 0's steady clock. The comparison
  // subtracts the value of rank 0.
  facts.clock_ahead_seconds =
      wall_less_steady() - static_cast<double>(read_clock(world_).offset_ns) / 1e9;
  facts.threads = own_threads();
  facts.cores = place.binding.cores;
  facts.sharers = place.sharers;
  facts.shares_run_dir = sees_what_root_writes(config_.run_dir);
  facts.shares_checkpoint_dir = sees_what_root_writes(config_.checkpoint_dir());
  return facts;
}

bool LaunchChecks::sees_what_root_writes(const std::filesystem::path& folder) const {
  const std::string mark = fmt::format(".trireme-doctor-seen-{}", ::getpid());
  std::filesystem::path file = nearest_folder(folder) / mark;
  std::error_code error;
  if (world_.rank() == 0) {
    try {
      write_file_durably(file, "");
    } catch (const Error&) {
      file.clear();  // another check reports this
    }
  }
  file = broadcast_text(world_, file.string(), 0);
  bool seen = file.empty() || std::filesystem::exists(file, error);
  const auto end = std::chrono::steady_clock::now() + kVisibleWithin;
  while (!seen && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kBetweenLooks);
    seen = std::filesystem::exists(file, error);
  }
  world_.barrier().wait();
  if (world_.rank() == 0 && !file.empty()) {
    std::filesystem::remove(file, error);
  }
  return seen;
}

std::vector<Finding> LaunchChecks::layout(const PlannedRanks& planned) const {
  int per_host = own().local_size;
  for (const RankPlace& place : places_) {
    per_host = std::min(per_host, place.local_size);
  }
  const bool as_now = planned.world == 0 || planned.world == world_.size();
  std::int64_t in_memory = 0;  // for the ranks of this host
  try {
    const Layout layout = make_layout(config_, as_now ? world_.size() : planned.world,
                                      planned.per_host > 0 ? planned.per_host : per_host);
    if (as_now) {
      const MemoryReport memory(config_, layout, places_, world_);
      in_memory = memory_checkpoint_bytes(memory.predicted());
    }
  } catch (const ConfigError& error) {
    Finding finding = error_of(error, "all ranks");
    if (world_.size() == 1 && planned.world == 0) {
      finding.remedy =
          "start the doctor as the run will be started, or give --ranks and --ranks-per-node";
    }
    return {finding};
  }
  return own().local_rank == 0
             ? check_shared_memory("/dev/shm", in_memory, own().local_size, own().host)
             : std::vector<Finding>();
}

std::int64_t LaunchChecks::memory_checkpoint_bytes(const std::vector<MemoryPlan>& ranks) const {
  std::int64_t bytes = 0;
  for (std::size_t rank = 0; rank < ranks.size() && config_.checkpoint.uses_memory(); ++rank) {
    bytes += places_[rank].host == own().host ? ranks[rank].snapshot : 0;
  }
  return bytes;
}

}  // namespace trireme
