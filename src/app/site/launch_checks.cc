#include "src/app/site/launch_checks.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset.h"
#include "mpi/agreement.h"
#include "mpi/launch_environment.h"
#include "slurm/doctor/node_checks.h"
#include "src/app/command/version.h"
#include "src/app/site/audit_checks.h"
#include "src/app/site/dataset_checks.h"
#include "src/app/site/key_checks.h"
#include "src/app/site/transport_checks.h"
#include "src/app/site/writer_checks.h"
#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/base/host_site.h"
#include "src/base/named_file.h"
#include "src/base/printable.h"
#include "src/compute/compute_threads.h"
#include "src/compute/device_context.h"
#include "src/compute/kernel_choice.h"
#include "src/device/cuda_device.h"
#include "src/kernels/cuda_kernels.h"
#include "src/kernels/instructions.h"
#include "src/nn/model_slice.h"
#include "src/train/memory/memory_report.h"
#include "src/train/numerics/self_check.h"
#include "src/train/report/openmetrics.h"
#include "src/train/run/fingerprint.h"
#include "src/train/run/openmetrics_path.h"
#include "src/train/run/run_config_checks.h"
#include "src/train/saving/base_weights.h"
#include "src/train/saving/resume_check.h"
#include "src/train/start/connect.h"
#include "src/train/start/open_dataset.h"
#include "src/train/start/rank_devices.h"
#include "src/train/start/run_place.h"
#include "src/train/start/space_forecast.h"
#include "src/train/start/startup.h"
#include "src/train/start/tokenizer_identity.h"
#include "src/train/start/training_data.h"
#include "src/train/watch/shared_clock.h"

namespace trireme {
namespace {

// Network file systems may show a new file to other hosts a few seconds late.
constexpr std::chrono::seconds kVisibleWithin{5};
constexpr std::chrono::milliseconds kBetweenLooks{100};

nlohmann::json fingerprint_of(const RunConfig& config, const TrainingData& train) {
  return config_fingerprint(config, train.digest(), describe(train.tokenizer()));
}

// Reports an error if not even one checkpoint fits, because the run ends with it, and a warning if
// not all of them do.
std::vector<Finding> check_space(const RunConfig& config, const std::string& host) {
  const SpaceForecast space = measured_space(config);
  const std::string lack = space.lack(config.checkpoint_dir().string());
  if (lack.empty()) {
    return {};
  }
  Finding finding = warning_of(lack, host, "");
  if (space.free_bytes.value_or(space.checkpoint_bytes) < space.checkpoint_bytes) {
    finding.severity = Severity::error;
    finding.code = ExitCode::io;
  }
  return {finding};
}

// Warns if the file for metrics.openmetrics cannot be written, which does not end a run, or holds
// what another program has written.
std::vector<Finding> check_metrics_file(const RunConfig& config, const std::string& host) {
  if (config.metrics.openmetrics.empty()) {
    return {};
  }
  try {
    const std::filesystem::path file = openmetrics_path(config);
    check_named_file(file, "metrics.openmetrics:");
    if (holds_foreign_metrics(file)) {
      return {
          warning_of(fmt::format("metrics.openmetrics: {} was not written by a run, which would "
                                 "replace it",
                                 printable(file.string())),
                     host, "name another file *.prom, or a folder")};
    }
  } catch (const Error& error) {
    return {warning_of(error.what(), host,
                       "name a file *.prom, or a folder, that this user can write to")};
  }
  return {};
}

// Returns what the run's manifests would say of its base, or nothing if that cannot be found, which
// check_taken_weights() reports.
std::optional<nlohmann::json> extra_of(const RunConfig& config) {
  nlohmann::json extra = nlohmann::json::object();
  try {
    if (config.model.has_frozen()) {
      std::vector<std::string> skipped;
      put_base(find_step(config.checkpoint.init_from, skipped), extra,
               config.model.lora.is_on() ? kBaseOfAdapters : kBaseOfModules);
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  return extra;
}

// Makes the checks of a start that resumes. A start from a given step does not look at others.
// train: the dataset, if it can be used.
void check_resuming(const RunConfig& config, const std::optional<TrainingData>& train) {
  const IntegerOrWord& resume = config.checkpoint.resume;
  const std::filesystem::path folder = config.checkpoint_dir();
  std::vector<StepFolder> steps = list_steps(folder);
  if (resume.word.empty()) {
    const std::string name = step_folder_name(resume.integer);
    std::erase_if(steps, [&](const StepFolder& step) { return step.path.filename() != name; });
    if (steps.empty()) {
      throw NotFound(fmt::format("{} has no {}", folder.string(), name));
    }
  }
  std::vector<std::string> problems;
  for (const StepFolder& step : steps) {
    check_readable(step);
    if (!step.manifest) {
      problems.push_back(step.problem);
    } else if (resume.is("never")) {
      throw resume_is_never(folder, step.step);
    } else {
      if (train) {
        check_same_run(*step.manifest, config, fingerprint_of(config, *train));
      }
      if (const auto extra = extra_of(config)) {
        check_same_weights(*step.manifest, config, *extra);
      }
      return;
    }
  }
  if (!steps.empty()) {
    throw no_valid_checkpoint_in(folder, problems);
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
  try {
    check_place_of_run(config_);
  } catch (const ConfigError& error) {
    found.push_back(error_of(error, host));
  }
  append(found, check_folder("checkpoint.dir", config_.checkpoint_dir(), 0, host));
  append(found, check_writers(config_, {kHostSiteFolder, site_folder()}, host));
  append(found, check_keys(config_.encryption, config_.security.lock_memory, host));
  const bool will_span = planned.per_host > 0 && planned.world > planned.per_host;
  append(found, check_transport(config_.security, host, spans_hosts(places_) || will_span));
  append(found, check_seccomp(config_.security, host));
  append(found, check_memory_lock(config_.security, host));
  if (world_.rank() == 0) {
    append(found, check_audit(config_.audit, host));  // rank 0 records and signs for all
    append(found, check_metrics_file(config_, host));
    check_key("comm.tuning", host, found, [&] { (void)read_tuning(config_.comm_tuning); });
  }
  (void)check_training_data(config_, host, found);
  return found;
}

std::vector<Finding> LaunchChecks::after_layout() const {
  std::vector<Finding> found;
  if (own().local_rank != 0) {
    return found;
  }
  const std::string& host = own().host;
  std::vector<Finding> known;  // host() has reported these
  const std::optional<TrainingData> train = check_training_data(config_, host, known);
  if (train) {
    check_key("checkpoint.allow_change", host, found, [&] {
      check_allowed_fields(config_.checkpoint.allow_change, fingerprint_of(config_, *train));
    });
  }
  check_key("checkpoint.dir", host, found, [&] {
    if (!is_finished(config_)) {
      check_resuming(config_, train);
    }
  });
  const DataConfig& data = config_.data;
  for (const EvaluationSet& set : data.validation) {
    const std::string key = set.key(data.validation.size());
    const std::optional<Dataset> opened = check_dataset(key, set.path, config_, host, found);
    if (train && opened) {
      check_key(key, host, found, [&] {
        check_same_tokenizer(key, *opened, data.train.front().key(data.train.size()), (*train)[0]);
      });
    }
  }
  append(found, check_space(config_, host));
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
    const std::optional<Device> device = own_device();
    if (!device) {
      return found;
    }
    check_precision(config_, *device);
    if (config_.train.attends_by_cudnn()) {
      (void)cuda_kernels(CudaAttention::cudnn);  // throws if the library is missing
    }
    if (config_.self_check) {
      DeviceContext context(*device, threads.threads);
      // If the degree is impossible, another check reports it.
      check_kernels(context,
                    kernel_shapes(config_, tensor_degree_works(config_.model, tp) ? tp : 1));
    }
  } catch (const Error& error) {
    found.push_back(error_of(error, own().host));
  }
  return found;
}

std::optional<Device> LaunchChecks::own_device() const {
  return devices_.empty()
             ? std::nullopt
             : std::optional(devices_[static_cast<std::size_t>(world_.rank())].device());
}

std::string LaunchChecks::own_kernels() const {
  const std::optional<Device> device = own_device();
  return device ? kernels_text(kernels_for(*device).name) : "none";
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
  facts.kernels = own_kernels();
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
      // Without devices, which another check reports, the CPUs' memory is what can be checked.
      const Device device = own_device().value_or(Device::cpu());
      const MemoryReport memory(config_, layout, places_, world_, device);
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
