#include "benchmarks/loader/workload.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/core.h>

#include "src/base/error.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

// llm is not part of MLPerf Storage: a step takes one sequence of 8192 tokens of 4 bytes each, at
// the 6,667 tokens per second of an H100 that torchtitan publishes for Llama 3 8B.
const std::vector<EmulatedWorkload>& workloads() {
  static const std::vector<EmulatedWorkload> all = {
      {"llm", "h100", 32768, 0, 0, 1, 8192 / 6667.0, 1, 0.9},
      {"unet3d", "h100", 146'600'628, 68'341'808, 1, 7, 0.323, 4, 0.9},
      {"unet3d", "a100", 146'600'628, 68'341'808, 1, 7, 0.636, 4, 0.9},
      {"resnet50", "h100", 114'660.07, 0, 1251, 400, 0.224, 8, 0.9},
      {"resnet50", "a100", 114'660.07, 0, 1251, 400, 0.435, 8, 0.9},
      {"cosmoflow", "h100", 2'828'486, 71'311, 1, 1, 0.00350, 4, 0.7},
      {"cosmoflow", "a100", 2'828'486, 71'311, 1, 1, 0.00551, 4, 0.7}};
  return all;
}

// Returns a number from (0, 1] that depends on `seed` only.
double uniform(std::uint64_t seed) {
  return (static_cast<double>(mix64(seed) >> 11) + 1) * 0x1p-53;
}

}  // namespace

std::int64_t EmulatedWorkload::bytes_of(std::int64_t sample) const {
  const auto seed = static_cast<std::uint64_t>(sample);
  const double normal = std::sqrt(-2 * std::log(uniform(2 * seed))) *
                        std::cos(2 * std::numbers::pi * uniform(2 * seed + 1));
  const double bytes = sample_bytes + sample_bytes_spread * normal;
  return static_cast<std::int64_t>(std::max({bytes, sample_bytes / 10, 64.0}));
}

EmulatedWorkload EmulatedWorkload::scaled(double fraction) const {
  EmulatedWorkload less = *this;
  less.sample_bytes *= fraction;
  less.sample_bytes_spread *= fraction;
  less.compute_seconds *= fraction;
  return less;
}

std::vector<std::string> workload_names() { return {"llm", "unet3d", "resnet50", "cosmoflow"}; }

EmulatedWorkload find_workload(const std::string& name, const std::string& accelerator) {
  for (const EmulatedWorkload& workload : workloads()) {
    if (workload.name == name && workload.accelerator == accelerator) {
      return workload;
    }
  }
  throw ConfigError(
      fmt::format("--emulate {} --accelerator {}: nobody has published this workload's time on "
                  "this accelerator; use h100",
                  name, accelerator));
}

}  // namespace trireme
