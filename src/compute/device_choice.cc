#include "src/compute/device_choice.h"

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

Device choose_cuda(int count, int local_rank, int local_size) {
  if (count == 1) {
    return {DeviceKind::cuda, 0};
  }
  if (count < local_size) {
    throw DeviceError(fmt::format(
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
    return {};
  }
  std::string why;
  const int count = cuda::device_count(&why);
  if (count > 0) {
    return choose_cuda(count, local_rank, local_size);
  }
  if (word == "cuda") {
    if (cuda::back_end() == cuda::BackEnd::none) {
      throw ConfigError(why);
    }
    throw DeviceError(fmt::format("there is no CUDA device that this process can use: {}", why));
  }
  return {};
}

std::string device_text(Device device) {
  if (device.kind != DeviceKind::cuda) {
    return "cpu";
  }
  const cuda::DeviceFacts facts = cuda::device_facts(device.index);
  return fmt::format("CUDA device {} ({}, {})", device.index, facts.name,
                     format_bytes(facts.bytes));
}

}  // namespace trireme
