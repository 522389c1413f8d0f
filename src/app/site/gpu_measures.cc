#include "src/app/site/gpu_measures.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "slurm/health/node_rates.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/compute/device_context.h"
#include "src/device/cuda_device.h"
#include "src/device/nvml/gpu_monitor.h"
#include "src/device/nvml/xid.h"
#include "src/train/report/ceiling.h"

namespace trireme {
namespace {

constexpr int kGpuSamples = 7;
constexpr std::int64_t kGpuProductSize = 4096;
constexpr int kGpuProductRounds = 4;
constexpr std::int64_t kGpuCopyBytes = std::int64_t{256} << 20;

std::string or_unknown(const Reading& reading) {
  return reading ? std::to_string(*reading) : "unknown";
}

// Returns the rates of copies in MB/s; `counted` is how often a byte is read or written.
std::vector<double> copy_rates(Stream& stream, const View& to, const View& from, double counted) {
  std::vector<double> rates;
  for (int sample = 0; sample < kGpuSamples; ++sample) {
    const Stopwatch watch;
    stream.copy(to, from);
    stream.synchronize();
    rates.push_back(counted * static_cast<double>(from.bytes()) / watch.seconds() / 1e6);
  }
  return rates;
}

// loaded: called while the GPU is still warm from its products.
void measure_gpu(int index, std::map<std::string, Rate>& rates,
                 const std::function<void()>& loaded) {
  const std::string gpu = fmt::format("GPU {} ", index);
  DeviceContext context({DeviceKind::cuda, index}, 1);
  for (const auto& [dtype, name] :
       {std::pair(DType::f32, "fp32"), std::pair(DType::bf16, "bf16")}) {
    std::vector<double> samples;
    for (int sample = 0; sample < kGpuSamples; ++sample) {
      samples.push_back(measure_product_rate(context, context.activations(), dtype, kGpuProductSize,
                                             kGpuProductRounds)
                            .best /
                        1e9);
      loaded();
    }
    rates[gpu + "products " + name] = rate_of(samples, "GFLOP/s");
  }
  Pool pinned(Device::cpu(), cuda::pinned_memory(index));
  const Buffer on_host = pinned.allocate(kGpuCopyBytes);
  const Buffer a = context.activations().allocate(kGpuCopyBytes);
  const Buffer b = context.activations().allocate(kGpuCopyBytes);
  const View host = on_host.view(DType::u8);
  const View first = a.view(DType::u8);
  const View second = b.view(DType::u8);
  Stream& stream = context.stream();
  rates[gpu + "copy"] = rate_of(copy_rates(stream, second, first, 2), "MB/s");
  rates[gpu + "from host"] = rate_of(copy_rates(stream, first, host, 1), "MB/s");
  rates[gpu + "to host"] = rate_of(copy_rates(stream, host, first, 1), "MB/s");
}

}  // namespace

void add_gpu_states(const std::vector<GpuState>& gpus, Measures& measures,
                    std::vector<std::string>& complaints) {
  measures.facts["GPUs"] = std::to_string(gpus.size());
  for (const GpuState& gpu : gpus) {
    for (std::string& fault : faults_of(gpu, gpus)) {
      complaints.push_back(std::move(fault));
    }
    if (!gpu.failure.empty()) {
      continue;
    }
    const std::string name = fmt::format("GPU {}", gpu.index);
    measures.facts[name] =
        fmt::format("{}, PCIe {} x{}, {} of {} NVLinks, up to {} MHz, memory {} MHz", gpu.name,
                    or_unknown(gpu.most_pcie_generation), or_unknown(gpu.pcie_width),
                    gpu.nvlinks_up, gpu.nvlinks_up + gpu.nvlinks_down, or_unknown(gpu.most_sm_mhz),
                    or_unknown(gpu.most_memory_mhz));
    measures.facts[name + " MIG"] = gpu.mig.value_or(0) != 0 ? "enabled" : "disabled";
    for (const auto& [counter, reading] : {std::pair("corrected memory errors", gpu.ecc_corrected),
                                           std::pair("remapped rows", gpu.rows_remapped),
                                           std::pair("PCIe replays", gpu.pcie_replays),
                                           std::pair("NVLink errors", gpu.nvlink_errors)}) {
      if (reading) {
        measures.counters[fmt::format("{} {}", name, counter)] = *reading;
      }
    }
  }
}

void add_logged_xids(const std::filesystem::path& log, const std::vector<GpuState>& gpus,
                     NodeExamination& result) {
  std::string why;
  for (const LoggedXid& logged : logged_xids(log, &why)) {
    const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                  [&](const GpuState& each) { return each.bus == logged.bus; });
    const std::string text = fmt::format(
        "{}: {} in the kernel's log since the node was started: reset the GPU or "
        "restart the node",
        gpu == gpus.end() ? "GPU at " + logged.bus : gpu->text(), xid_text(logged.xid));
    const bool is_new = std::find(result.complaints.begin(), result.complaints.end(), text) ==
                        result.complaints.end();
    if (is_hardware_xid(logged.xid) && is_new) {
      result.complaints.push_back(text);
    }
  }
  if (!why.empty()) {
    result.notes.push_back(fmt::format("XIDs: {}", why));
  }
}

std::string with_identity(const std::string& complaint, const Measures& measures,
                          const std::vector<GpuState>& gpus) {
  for (const GpuState& gpu : gpus) {
    const std::string name = fmt::format("GPU {}", gpu.index);
    const auto speaks_of = [&](const auto& named) {
      return (named.first == name || named.first.starts_with(name + " ")) &&
             complaint.starts_with(named.first + ":");
    };
    if (std::any_of(measures.facts.begin(), measures.facts.end(), speaks_of) ||
        std::any_of(measures.counters.begin(), measures.counters.end(), speaks_of)) {
      return gpu.text() + complaint.substr(name.size());
    }
  }
  return complaint;
}

namespace {

// Measures the speed of the GPUs that this process sees. loaded: see measure_gpu().
void measure_gpus(int visible, NodeExamination& result,
                  const std::function<void(const char*)>& reported,
                  const std::function<void()>& loaded) {
  if (cuda::back_end() != cuda::BackEnd::real) {
    result.notes.push_back(cuda::back_end() == cuda::BackEnd::simulated
                               ? "rates of GPUs: a simulated CUDA device has no speed"
                               : "rates of GPUs: this program was built without CUDA");
    loaded();
    return;
  }
  for (int index = 0; index < visible; ++index) {
    reported("the speed of GPUs");
    try {
      measure_gpu(index, result.measures.rates, loaded);
    } catch (const Error& error) {
      result.complaints.push_back(fmt::format("GPU {}: {}", index, error.what()));
    }
  }
}

}  // namespace

void examine_gpus(NodeExamination& result, const std::function<void(const char*)>& reported,
                  const std::filesystem::path& root) {
  reported("GPUs");
  std::string why;
  const std::unique_ptr<GpuMonitor> monitor = GpuMonitor::open(cuda::management_library(), &why);
  const cuda::DeviceSearch found = cuda::find_devices();
  result.back_end = cuda::back_end_text();
  if (monitor == nullptr && found.count == 0) {
    if (cuda::back_end() != cuda::BackEnd::none) {
      result.notes.push_back(fmt::format("GPUs: {}; {}", found.why, why));
    }
    return;
  }
  if (monitor != nullptr) {
    result.gpus = monitor->gpus();
    result.driver = monitor->driver().version;
  } else {
    result.notes.push_back(fmt::format("errors, clocks and links of GPUs: {}", why));
  }
  if (found.count == 0 && cuda::back_end() != cuda::BackEnd::none) {
    result.complaints.push_back(fmt::format("GPUs: none can be used: {}", found.why));
  }
  // An idle GPU neither gets hot nor draws power: only under load does it show what slows it down.
  measure_gpus(found.count, result, reported, [&] {
    const std::vector<GpuState> now = monitor == nullptr ? result.gpus : monitor->gpus();
    for (std::size_t i = 0; i < std::min(now.size(), result.gpus.size()); ++i) {
      add_load(now[i], result.gpus[i]);
    }
  });
  if (monitor != nullptr) {
    add_gpu_states(result.gpus, result.measures, result.complaints);
    add_logged_xids(root / "dev/kmsg", result.gpus, result);
  }
}

}  // namespace trireme
