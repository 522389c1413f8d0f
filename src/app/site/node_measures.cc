#include "src/app/site/node_measures.h"

#include <chrono>
#include <ctime>

#include "mpi/topology.h"
#include "slurm/health/node_facts.h"
#include "slurm/health/node_rates.h"
#include "src/app/site/gpu_measures.h"
#include "src/base/error.h"
#include "src/base/node_name.h"
#include "src/compute/compute_threads.h"
#include "src/compute/kernel_choice.h"
#include "src/train/report/ceiling.h"

namespace trireme {
namespace {

constexpr std::int64_t kProductSize = 2048;
constexpr int kProductRounds = 2;
constexpr int kSamples = 7;
constexpr std::int64_t kDiskBytes = std::int64_t{256} << 20;
constexpr std::chrono::seconds kDiskLimit{8};

// Returns the rates in GFLOP/s of all cores together.
std::vector<double> product_rates(DType dtype) {
  DeviceContext context(Device::cpu(), measure_compute_threads(current_binding().cores).threads);
  std::vector<double> rates;
  for (int sample = 0; sample < kSamples; ++sample) {
    rates.push_back(
        measure_product_rate(context, context.activations(), dtype, kProductSize, kProductRounds)
            .best /
        1e9);
  }
  return rates;
}

}  // namespace

NodeExamination examine_node(const std::filesystem::path& folder,
                             const std::function<void(const char*)>& reported) {
  NodeExamination result;
  Measures& measures = result.measures;
  measures.node = node_name();
  measures.time = std::time(nullptr);
  measures.facts = node_facts();
  measures.counters = link_errors();
  measures.facts["clock"] = clock_is_kept() ? "synchronised" : "not synchronised (no NTP)";
  measures.facts["kernels"] = kernels_for(Device::cpu()).name;
  result.complaints = node_troubles();
  const auto part = [&](const char* name, const std::function<void()>& measure) {
    reported(name);
    try {
      measure();
    } catch (const Error& error) {
      result.complaints.push_back(fmt::format("{}: {}", name, error.what()));
    }
  };
  part("matrix products", [&] {
    measures.rates["products fp32"] = rate_of(product_rates(DType::f32), "GFLOP/s");
    measures.rates["products bf16"] = rate_of(product_rates(DType::bf16), "GFLOP/s");
  });
  part("memory", [&] {
    measures.rates["memory"] = rate_of(memory_rates(current_binding().cores, kSamples), "MB/s");
  });
  part("shared memory", [&] {
    measures.rates["shared memory"] = rate_of(shared_memory_rates("/dev/shm", kSamples), "MB/s");
  });
  part("disk", [&] {
    const DiskRates rates = disk_rates(folder, kDiskBytes, kDiskLimit);
    measures.rates["disk write"] = rate_of(rates.write, "MB/s");
    measures.rates["disk read"] = rate_of(rates.read, "MB/s");
  });
  examine_gpus(result, reported);
  return result;
}

}  // namespace trireme
