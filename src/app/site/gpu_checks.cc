#include "src/app/site/gpu_checks.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/ranges.h>
#include <unistd.h>

#include "mpi/nccl/nccl_world.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/device/mps_folder.h"
#include "src/kernels/cuda_kernels.h"
#include "src/train/start/rank_devices.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

struct Variable {
  const char* name;
  const char* harmful;  // the value that matters; null for any
  const char* effect;
};

constexpr std::array kVariables = {
    Variable{"NCCL_P2P_DISABLE", "1", "GPUs of a host exchange data over the host's memory"},
    Variable{"NCCL_SHM_DISABLE", "1", "ranks of a host exchange data over the network"},
    Variable{"NCCL_IB_DISABLE", "1", "NCCL uses TCP instead of InfiniBand"},
    Variable{"NCCL_NET_GDR_LEVEL", "LOC",
             "data passes the host's memory on its way to the network"},
    Variable{"NCCL_NET", "Socket", "NCCL uses TCP instead of InfiniBand"},
    Variable{"NCCL_ALGO", nullptr, "NCCL may not choose the fastest algorithm"},
    Variable{"NCCL_PROTO", nullptr, "NCCL may not choose the fastest protocol"},
    Variable{"NCCL_MAX_NCHANNELS", nullptr, "NCCL may not use all links"},
    Variable{"NCCL_DEBUG", "TRACE", "NCCL prints a line for every call"},
    Variable{"CUDA_LAUNCH_BLOCKING", "1", "the host waits for every kernel"},
    Variable{"CUDA_DEVICE_MAX_CONNECTIONS", "1", "nothing runs beside anything else on a GPU"},
    Variable{"CUDA_FORCE_PTX_JIT", "1", "kernels are compiled again at every start"}};

std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Returns whether a rank gets the GPU, as far as that is known.
bool may_be_used(const GpuState& gpu, const GpuSurroundings& here) {
  return here.used.empty() || here.used.contains(gpu.uuid) || here.used.contains(gpu.bus) ||
         (gpu.uuid.empty() && gpu.bus.empty());
}

// Reports what ends a start on the GPU: an error if a rank gets it, else a warning.
Finding unusable(const GpuState& gpu, const std::string& what, const GpuSurroundings& here,
                 const std::string& remedy) {
  return may_be_used(gpu, here)
             ? Finding{Severity::error, ExitCode::device, what, here.host, remedy}
             : warning_of(what + "; no rank of this launch gets it", here.host, remedy);
}

void check_driver(const GpuSurroundings& here, std::vector<Finding>& found) {
  if (!here.no_driver.empty() && here.visible > 0) {
    found.push_back(warning_of(
        fmt::format("{}: errors, clocks and energy of the GPUs stay unknown", here.no_driver),
        here.host, here.driver_remedy));
  }
}

void check_number(const GpuSurroundings& here, bool share_device, std::vector<Finding>& found) {
  if (here.ranks > here.visible && here.ranks > here.started && !share_device) {
    // A launcher that gives each process one GPU may give other ones to the other ranks.
    const bool may_see_others = here.visible == 1;
    found.push_back(
        {may_see_others ? Severity::warning : Severity::error, ExitCode::usage,
         fmt::format("{} {} for {} planned ranks, but each rank needs its own",
                     may_see_others ? "this process sees" : "this host has",
                     counted(here.visible, "GPU"), here.ranks),
         here.host,
         fmt::format("plan {} ranks per host, or set train.share_device=true", here.visible)});
  }
  if (here.visible > 1 && here.ranks < here.visible) {
    found.push_back(
        warning_of(fmt::format("this host has {} for {}: {} idle", counted(here.visible, "GPU"),
                               counted(here.ranks, "rank"),
                               here.visible - here.ranks == 1 ? "one is" : "some are"),
                   here.host, fmt::format("start {} ranks per host, one per GPU", here.visible)));
  }
  if (!here.mps.empty() && share_device) {
    found.push_back(warning_of(
        fmt::format("CUDA's multi-process service runs ({}): ranks share GPUs with other processes",
                    here.mps),
        here.host, "stop it for runs that should have their GPUs alone"));
  }
}

void check_state(const GpuState& gpu, const GpuSurroundings& here, std::vector<Finding>& found) {
  for (const std::string& fault : faults_of(gpu, here.gpus)) {
    found.push_back(gpu.failure.empty()
                        ? warning_of(fault, here.host, "run `trireme health` on this node")
                        : unusable(gpu, fault, here, "drain the node"));
  }
  const auto warn = [&](const std::string& what, const std::string& remedy) {
    found.push_back(warning_of(fmt::format("{}: {}", gpu.text(), what), here.host, remedy));
  };
  if (gpu.is_prohibited) {
    found.push_back(unusable(
        gpu,
        fmt::format("{}: its compute mode prohibits computing: ranks cannot use it", gpu.text()),
        here, "nvidia-smi -c 0"));
  }
  if (gpu.mig.value_or(0) != 0) {
    warn("it is split into MIG slices: a rank gets a slice, and needs train.share_device=true",
         "nvidia-smi -mig 0 makes it whole again");
  }
  const std::string use = use_of(gpu);
  if (gpu.is_exclusive && !gpu.processes.empty()) {
    found.push_back(unusable(
        gpu, fmt::format("{}: {}: ranks cannot use it", gpu.text(), use), here,
        "end it: the compute mode is exclusive, so that a rank cannot start (nvidia-smi -c 0 lets "
        "processes share the GPU)"));
  } else if (!use.empty()) {
    warn(use + ": ranks get what is left of its memory and its speed",
         "end it, or take another node");
  }
}

// Drivers that are not kept loaded take seconds to start, and lose clocks and error counts.
void check_persistence(const GpuSurroundings& here, std::vector<Finding>& found) {
  const auto off = std::count_if(here.gpus.begin(), here.gpus.end(),
                                 [](const GpuState& gpu) { return gpu.persistence == 0; });
  if (off > 0) {
    found.push_back(warning_of(
        fmt::format("persistence mode is off for {}: every start waits for the driver, which "
                    "forgets its error counts in between",
                    counted(off, "GPU")),
        here.host, "run nvidia-persistenced, or nvidia-smi -pm 1"));
  }
}

void check_peers(const GpuSurroundings& here, std::vector<Finding>& found) {
  if (here.without_peer_access.empty()) {
    return;
  }
  const auto [first, second] = here.without_peer_access.front();
  found.push_back(warning_of(
      fmt::format(
          "no peer access within {} of GPUs, such as {} and {}: they exchange data over the "
          "host's memory",
          counted(static_cast<std::int64_t>(here.without_peer_access.size()), "pair"), first,
          second),
      here.host,
      "see `nvidia-smi topo -p2p r`; turn off the IOMMU or PCIe ACS, or start the fabric manager"));
}

// The network card reads a GPU's memory through the module nvidia_peermem, or through dma-buf,
// which needs the open kernel modules of the driver.
void check_network(const GpuSurroundings& here, std::vector<Finding>& found) {
  std::error_code none;
  bool has_port = false;
  for (const auto& device : fs::directory_iterator(here.root / "sys/class/infiniband", none)) {
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      const std::string state = line_of(port.path() / "state");
      has_port = true;
      if (state.find("ACTIVE") == std::string::npos) {
        found.push_back(warning_of(
            fmt::format("port {} of {} is not active ({}): NCCL does not use it",
                        port.path().filename().string(), device.path().filename().string(),
                        state.empty() ? "unknown" : state),
            here.host, "check its cable, and the subnet manager (ibstat, sminfo)"));
      }
    }
  }
  const bool has_module = fs::exists(here.root / "sys/module/nvidia_peermem", none);
  const bool is_open =
      line_of(here.root / "proc/driver/nvidia/version").find("Open Kernel") != std::string::npos;
  if (has_port && !has_module && !is_open) {
    found.push_back(warning_of(
        "GPUDirect RDMA is not available (neither the module nvidia_peermem nor the driver's open "
        "kernel modules with dma-buf): data for other hosts passes the host's memory",
        here.host, "modprobe nvidia_peermem, or install the open kernel modules"));
  }
}

}  // namespace

std::string seen_gpus() {
  std::string seen;
  try {
    for (int index = 0; index < cuda::device_count(); ++index) {
      const cuda::DeviceFacts facts = cuda::device_identity(index);
      seen += fmt::format("{} {} ", facts.uuid, facts.bus);
    }
  } catch (const Error&) {
    return "";  // agree_on_devices() reports the fault
  }
  return seen;
}

void keep_seen(const std::vector<GpuState>& all, const std::string& seen, GpuSurroundings& here) {
  std::set<std::string> names;
  bool has_unmatched = false;
  std::istringstream words(seen);
  for (std::string uuid, bus; words >> uuid >> bus;) {
    // A slice has a UUID of its own, but the address of its GPU.
    has_unmatched |= std::none_of(all.begin(), all.end(), [&](const GpuState& gpu) {
      return gpu.uuid == uuid || gpu.bus == bus;
    });
    names.insert({uuid, bus});
  }
  for (const GpuState& gpu : all) {
    // A GPU that the driver cannot reach may have no name, and be one that has no state.
    const bool may_be_seen = gpu.uuid.empty() && gpu.bus.empty() && has_unmatched;
    if (names.empty() || names.contains(gpu.uuid) || names.contains(gpu.bus) || may_be_seen) {
      here.gpus.push_back(gpu);
    } else if (!gpu.failure.empty()) {
      here.lost_elsewhere.push_back(gpu);
    }
  }
}

GpuSurroundings gpu_surroundings(const std::string& host, int started, int ranks,
                                 const std::string& seen) {
  GpuSurroundings here;
  here.host = host;
  here.started = started;
  here.ranks = ranks;
  here.visible = cuda::device_count();
  for (int a = 0; a < here.visible; ++a) {
    for (int b = a + 1; b < here.visible; ++b) {
      if (!cuda::can_access_peer(a, b)) {
        here.without_peer_access.emplace_back(a, b);
      }
    }
  }
  here.versions = cuda::cuda_versions();
  here.mps = mps_folder();
  const auto monitor =
      GpuMonitor::open(cuda::management_library(), &here.no_driver, &here.driver_remedy);
  if (monitor != nullptr) {
    here.driver = monitor->driver();
    keep_seen(monitor->gpus(), seen, here);
  }
  // This process itself may use the GPUs, because doctor also runs the kernels.
  for (GpuState& gpu : here.gpus) {
    leave_out(::getpid(), gpu);
  }
  return here;
}

std::vector<Finding> check_gpus(const GpuSurroundings& here, bool share_device,
                                const SlurmEnvironment& environment) {
  std::vector<Finding> found;
  check_driver(here, found);
  check_number(here, share_device, found);
  for (const GpuState& gpu : here.gpus) {
    check_state(gpu, here, found);
  }
  for (const GpuState& gpu : here.lost_elsewhere) {
    found.push_back(warning_of(
        fmt::format("GPU {}, which this launch does not see: {}", gpu.index, gpu.failure),
        here.host, "run `trireme health` on this node"));
  }
  check_persistence(here, found);
  check_peers(here, found);
  check_network(here, found);
  append(found, check_gpu_variables(environment, here.host));
  return found;
}

std::vector<Finding> check_gpu_variables(const SlurmEnvironment& environment,
                                         const std::string& host) {
  std::vector<Finding> found;
  for (const Variable& variable : kVariables) {
    const auto value = environment(variable.name);
    if (value && !value->empty() && (variable.harmful == nullptr || *value == variable.harmful)) {
      found.push_back(warning_of(fmt::format("{}={}: {}", variable.name, *value, variable.effect),
                                 host, fmt::format("unset {} unless it is wanted", variable.name)));
    }
  }
  return found;
}

std::string gpu_summary(const GpuSurroundings& here) {
  std::set<std::string> names;
  for (int index = 0; index < here.visible; ++index) {
    names.insert(cuda::device_identity(index).name);
  }
  const std::string simulated =
      cuda::back_end() == cuda::BackEnd::simulated ? "simulated CUDA device, no speed; " : "";
  const std::string driver = here.driver.version.empty()
                                 ? ""
                                 : fmt::format(", driver {} for CUDA {}", here.driver.version,
                                               cuda::cuda_version_text(here.driver.cuda_version));
  return fmt::format("{}{} ({}){}, CUDA {}, {}, {}", simulated, counted(here.visible, "GPU"),
                     fmt::join(names, "; "), driver, cuda::cuda_version_text(here.versions.runtime),
                     cuda_product_library(), nccl_trouble().empty() ? nccl_version() : "no NCCL");
}

}  // namespace trireme
