#include "benchmarks/provenance.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>
#include <unistd.h>

#include "mpi/topology.h"
#include "src/base/error.h"
#include "src/base/node_name.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"
#include "src/device/nvml/gpu_monitor.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// docs/benchmarks.md and benchmarks/schema/ list them, too.
constexpr std::array kVariables = {"DNNL_MAX_CPU_ISA",
                                   "GLIBC_TUNABLES",
                                   "GOMP_CPU_AFFINITY",
                                   "MALLOC_ARENA_MAX",
                                   "NCCL_ALGO",
                                   "NCCL_IB_HCA",
                                   "NCCL_NET",
                                   "NCCL_PROTO",
                                   "NCCL_SOCKET_IFNAME",
                                   "OMPI_MCA_btl",
                                   "OMPI_MCA_hwloc_base_binding_policy",
                                   "OMPI_MCA_pml",
                                   "OMPI_MCA_rmaps_base_mapping_policy",
                                   "OMPI_MCA_rmaps_base_oversubscribe",
                                   "OMP_DYNAMIC",
                                   "OMP_NUM_THREADS",
                                   "OMP_PLACES",
                                   "OMP_PROC_BIND",
                                   "OMP_THREAD_LIMIT",
                                   "OMP_WAIT_POLICY",
                                   "ONEDNN_MAX_CPU_ISA",
                                   "SLURM_CPUS_PER_TASK",
                                   "SLURM_CPU_FREQ_REQ",
                                   "SLURM_JOB_NUM_NODES",
                                   "SLURM_NTASKS",
                                   "SLURM_NTASKS_PER_NODE",
                                   "TRIREME_KERNELS",
                                   "UCX_NET_DEVICES",
                                   "UCX_RNDV_THRESH",
                                   "UCX_TLS"};

std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  return std::getline(file, line) ? std::optional(line) : std::nullopt;
}

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

Json processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) {
      const std::size_t colon = line.find(": ");
      return colon == std::string::npos ? Json(nullptr) : Json(line.substr(colon + 2));
    }
  }
  return nullptr;
}

// UsableGpus holds what is known of the GPUs that this process may use. An error of one must not
// cost the results that have been measured.
struct UsableGpus {
  std::vector<cuda::DeviceFacts> gpus;
  Json driver = nullptr;
  Json error = nullptr;  // why the rest is unknown
};

// Returns the version of NVIDIA's driver; the newest CUDA that it runs where its library is
// missing.
Json driver_json() {
  const auto monitor = GpuMonitor::open(cuda::management_library());
  return monitor != nullptr
             ? monitor->driver().version
             : fmt::format("of CUDA {}", cuda::cuda_version_text(cuda::cuda_versions().driver));
}

UsableGpus usable_gpus() {
  UsableGpus found;
  try {
    const int count = cuda::device_count();
    if (count > 0) {
      found.driver = driver_json();
    }
    for (int index = 0; index < count; ++index) {
      found.gpus.push_back(cuda::device_identity(index));
    }
  } catch (const Error& error) {
    found.error = error.what();
  }
  return found;
}

}  // namespace

Json gpus_json(const std::vector<cuda::DeviceFacts>& gpus) {
  Json list = Json::array();
  for (const cuda::DeviceFacts& gpu : gpus) {
    list.push_back({{"name", gpu.name},
                    {"uuid", gpu.uuid},
                    {"bus", gpu.bus},
                    {"memory_bytes", gpu.bytes},
                    {"multiprocessors", gpu.multiprocessors},
                    {"compute_capability", gpu.compute_capability}});
  }
  return list;
}

std::int64_t last_level_cache_bytes(const fs::path& root) {
  // Each cache appears below every processor that uses it. Its level and the list of those
  // processors identify it.
  std::int64_t total = 0;
  int last_level = 0;
  std::set<std::string> seen;
  std::error_code none;
  for (const auto& cpu : fs::directory_iterator(root / "sys/devices/system/cpu", none)) {
    for (const auto& cache : fs::directory_iterator(cpu.path() / "cache", none)) {
      const auto level = first_line(cache.path() / "level");
      const auto size = first_line(cache.path() / "size");
      const auto sharers = first_line(cache.path() / "shared_cpu_list");
      if (!level || !size || !sharers || first_line(cache.path() / "type") == "Instruction") {
        continue;
      }
      const int number = std::atoi(level->c_str());
      if (number > last_level) {
        last_level = number;
        total = 0;
        seen.clear();
      }
      if (number == last_level && seen.insert(*sharers).second) {
        total += parse_bytes(*size);
      }
    }
  }
  return total;
}

Json host_json() {
  struct utsname name {};
  ::uname(&name);
  const HostShape shape = host_shape();
  const std::int64_t cache = last_level_cache_bytes();
  const UsableGpus found = usable_gpus();
  return {{"name", name.nodename},
          {"node", node_name()},
          {"kernel", name.release},
          {"machine", name.machine},
          {"processor", processor_name()},
          {"cores", shape.cores},
          {"threads", std::thread::hardware_concurrency()},
          {"sockets", shape.packages},
          {"numa_nodes", shape.numa_nodes},
          {"last_level_cache_bytes", cache > 0 ? Json(cache) : Json(nullptr)},
          {"memory_bytes", std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE)},
          {"frequency_governor",
           text_or_null(first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))},
          {"huge_pages", text_or_null(first_line("/sys/kernel/mm/transparent_hugepage/enabled"))},
          {"gpus", gpus_json(found.gpus)},
          {"gpu_driver", found.driver},
          {"gpu_error", found.error}};
}

Json environment_json() {
  Json all = Json::object();
  for (const char* name : kVariables) {
    if (const char* value = std::getenv(name)) {
      all[name] = value;
    }
  }
  return all;
}

Json clock_json() {
  struct timespec resolution {};
  ::clock_getres(CLOCK_MONOTONIC, &resolution);
  constexpr int kCalls = 1000;
  const Stopwatch all;
  for (int call = 0; call < kCalls; ++call) {
    (void)all.seconds();
  }
  return {{"name", "CLOCK_MONOTONIC"},
          {"source", text_or_null(first_line(
                         "/sys/devices/system/clocksource/clocksource0/current_clocksource"))},
          {"resolution_ns",
           1e9 * static_cast<double>(resolution.tv_sec) + static_cast<double>(resolution.tv_nsec)},
          {"call_ns", 1e9 * all.seconds() / kCalls}};
}

}  // namespace trireme
