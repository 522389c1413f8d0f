#include "benchmarks/mem/device_memory.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

#include "benchmarks/report.h"
#include "benchmarks/sampling.h"
#include "benchmarks/statistics.h"
#include "src/base/error.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"
#include "src/tensor/tensor.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kUsualDeviceArray = std::int64_t{1} << 30;
constexpr std::int64_t kLeastDeviceArray = std::int64_t{1} << 20;
constexpr std::int64_t kPartOfFree = 8;
constexpr double kDeviceSampleSeconds = 2e-3;  // so that the host's wait does not count
constexpr int kMostCalls = 1000;
constexpr StopRule kKnownDeviceRate{.least = 6, .most = 200, .seconds = 5, .precision = 0.05};

struct DeviceKernel {
  const char* name;
  int moved;  // how often an array is read or written
};
constexpr std::array kDeviceKernels = {DeviceKernel{"copy", 2}, DeviceKernel{"add", 3}};

std::int64_t array_bytes(const cuda::DeviceFacts& facts, std::int64_t wanted) {
  const std::int64_t most = facts.free_bytes / 2;
  if (wanted > 0 && (wanted < kLeastDeviceArray || wanted > most)) {
    throw ConfigError(fmt::format(
        "--bytes: 2 arrays of {} each; an array must have at least {}, and the free memory of the "
        "GPU allows {}",
        format_bytes(wanted), format_bytes(kLeastDeviceArray), format_bytes(most)));
  }
  return wanted > 0
             ? wanted
             : std::clamp(facts.free_bytes / kPartOfFree, std::int64_t{64}, kUsualDeviceArray);
}

// Holds x and y, both f32 [elements]. y = x, then y += x, and so on: every element is known.
class DeviceArrays {
 public:
  DeviceArrays(DeviceContext& context, std::int64_t bytes)
      : context_(context),
        elements_(bytes / size_of(DType::f32)),
        x_(context.activations(), {elements_}, DType::f32),
        y_(context.activations(), {elements_}, DType::f32) {
    context.kernels().fill(context.stream(), x_.view(), kValue);
    context.kernels().fill(context.stream(), y_.view(), 0);
  }

  // Runs a kernel `calls` times, and returns the seconds of a call.
  double seconds(std::size_t kernel, int calls) {
    context_.stream().synchronize();
    const Stopwatch watch;
    for (int call = 0; call < calls; ++call) {
      run(kernel);
    }
    context_.stream().synchronize();
    return watch.seconds() / calls;
  }

  // Copies and adds once, and returns how many of the elements that it looks at are wrong.
  std::int64_t wrong() {
    run(0);
    run(1);
    std::int64_t count = 0;
    const std::int64_t looked_at = std::min(elements_, kLookedAt);
    for (const std::int64_t first : {std::int64_t{0}, elements_ - looked_at}) {
      const auto found = context_.read<float>(y_.view().slice(first, looked_at));
      count += looked_at - std::count(found.begin(), found.end(), 2 * kValue);
    }
    return count;
  }

  std::int64_t bytes() const { return elements_ * size_of(DType::f32); }

 private:
  static constexpr float kValue = 0.75F;
  static constexpr std::int64_t kLookedAt = 1 << 16;

  void run(std::size_t kernel) {
    if (kernel == 0) {
      context_.stream().copy(y_.view(), x_.view());
    } else {
      context_.kernels().add(context_.stream(), y_.view(), x_.view());
    }
  }

  DeviceContext& context_;
  std::int64_t elements_;
  Tensor x_, y_;
};

Json device_entry(const cuda::DeviceFacts& facts, const DeviceKernel& kernel, std::int64_t bytes,
                  const std::vector<double>& seconds, int calls, const StopRule& rule,
                  std::int64_t wrong) {
  const MedianInterval time = median_interval(seconds);
  const double moved = kernel.moved * static_cast<double>(bytes);
  return {{"name", "mem_device"},
          {"params",
           {{"kernel", kernel.name},
            {"device", facts.name},
            {"uuid", facts.uuid},
            {"array_bytes", bytes},
            {"aggregated", calls}}},
          {"metrics",
           {{"bytes_per_s", moved / time.median},
            {"bytes_per_s_low", moved / time.high},
            {"bytes_per_s_high", moved / time.low},
            {"wrong", wrong}}},
          {"measurement", to_json({.warmup = 1,
                                   .stop = rule,
                                   .sample = "params.aggregated calls that are queued one after "
                                             "the other, until the last has ended, per call",
                                   .synchronized_by = kOneProcess})},
          {"samples", {{"time_us", samples_json(multiplied(seconds, 1e6))}}}};
}

}  // namespace

BenchMemResult bench_device_memory(DeviceContext& context, const DeviceMemoryOptions& options) {
  const cuda::DeviceFacts facts = cuda::device_facts(context.device().index);
  DeviceArrays arrays(context, array_bytes(facts, options.bytes));
  const StopRule rule = options.duration > 0 ? StopRule::count_or_duration(
                                                   0, options.duration / std::size(kDeviceKernels))
                                             : kKnownDeviceRate;
  BenchMemResult result{Json::array(), "", arrays.wrong()};
  result.text = fmt::format("# {}, arrays of {}\n# Kernel        GB/s\n", facts.name,
                            format_bytes(arrays.bytes()));
  for (std::size_t kernel = 0; kernel < kDeviceKernels.size(); ++kernel) {
    const double once = arrays.seconds(kernel, 1);
    const int calls = static_cast<int>(
        std::clamp(std::ceil(kDeviceSampleSeconds / once), 1.0, double{kMostCalls}));
    std::vector<double> seconds;
    for (Sampling sampling(rule); sampling.more(seconds);) {
      seconds.push_back(arrays.seconds(kernel, calls));
    }
    result.results.push_back(device_entry(facts, kDeviceKernels[kernel], arrays.bytes(), seconds,
                                          calls, rule, result.wrong));
    result.text +=
        fmt::format("  {:<6} {:>11.1f}\n", kDeviceKernels[kernel].name,
                    1e-9 * result.results.back().at("metrics").at("bytes_per_s").get<double>());
  }
  return result;
}

}  // namespace trireme
