#include "src/compute/device_choice.h"

#include <algorithm>

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

constexpr const char* kUseCpu = "; to compute on the CPU, set train.device=cpu (or --device cpu)";

Device choose_cuda(int count, int local_rank, int local_size) {
  if (count == 1) {
    return {DeviceKind::cuda, 0};
  }
  if (count < local_size) {
    throw ConfigError(fmt::format(
        "this host has {} CUDA devices for {} ranks, but each rank needs its own: start {} ranks "
        "per host, or set train.device=cpu (or --device cpu)",
        count, local_size, count));
  }
  return {DeviceKind::cuda, local_rank};
}

}  // namespace

std::vector<std::string> device_words() { return {"auto", "cpu", "cuda"}; }

Device choose_device(std::string_view word, int local_rank, int local_size) {
  if (word == "cpu") {
    return Device::cpu();
  }
  const cuda::DeviceSearch found = cuda::find_devices();
  if (found.count > 0) {
    return choose_cuda(found.count, local_rank, local_size);
  }
  if (word == "auto" && found.trouble == cuda::DeviceSearch::Trouble::absent) {
    return Device::cpu();
  }
  if (cuda::back_end() == cuda::BackEnd::none) {
    throw ConfigError(found.why);
  }
  const char* const what = found.trouble == cuda::DeviceSearch::Trouble::library
                               ? "this process cannot compute on its CUDA devices"
                               : "there is no CUDA device that this process can use";
  const std::string text = fmt::format("{}: {}{}", what, found.why, word == "auto" ? kUseCpu : "");
  if (found.trouble == cuda::DeviceSearch::Trouble::fault) {
    throw DeviceError(text);
  }
  throw ConfigError(text);
}

std::vector<int> assign_devices(const std::vector<RankNearness>& ranks,
                                const std::vector<DeviceNearness>& devices) {
  constexpr int kNone = -1;
  std::vector<int> chosen(ranks.size(), kNone);
  std::vector<int> users(devices.size(), 0);
  const auto is_near = [&](const RankNearness& rank, const DeviceNearness& device) {
    return device.numa_node &&
           std::count(rank.numa_nodes.begin(), rank.numa_nodes.end(), *device.numa_node) > 0;
  };
  const auto give = [&](std::size_t rank, bool near_only) {
    std::size_t best = devices.size();
    for (std::size_t d = 0; d < devices.size(); ++d) {
      const bool fits = !near_only || (users[d] == 0 && is_near(ranks[rank], devices[d]));
      if (fits && (best == devices.size() || users[d] < users[best])) {
        best = d;
      }
    }
    if (best < devices.size()) {
      chosen[rank] = static_cast<int>(best);
      ++users[best];
    }
  };
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const bool is_bound = !std::all_of(devices.begin(), devices.end(), [&](const auto& device) {
      return is_near(ranks[rank], device);
    });
    if (is_bound) {
      give(rank, true);
    }
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (chosen[rank] == kNone) {
      give(rank, false);
    }
  }
  return chosen;
}

std::string device_text(Device device) {
  if (device.kind != DeviceKind::cuda) {
    return "cpu";
  }
  const cuda::DeviceFacts facts = cuda::device_facts(device.index);
  return fmt::format("{}CUDA device {} ({}, {}, {})",
                     cuda::back_end() == cuda::BackEnd::simulated ? "simulated " : "", device.index,
                     facts.name, facts.uuid, format_bytes(facts.bytes));
}

void say_device(Device device) {
  if (device.kind == DeviceKind::cuda) {
    fmt::print(stderr, "trireme: computes on {}\n", device_text(device));
  }
}

}  // namespace trireme
