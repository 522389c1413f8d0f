// RankDevice says on which device a rank computes: for logs, exit reasons and metrics, which must
// never take the simulated device for a real one. A plain value.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "src/device/device.h"

namespace trireme {

struct RankDevice {
  bool is_gpu = false;  // otherwise the rank computes on the CPU, and the rest is empty
  bool is_simulated = false;
  int index = 0;     // as the rank counts the devices that it sees
  std::string name;  // for example "NVIDIA H100 80GB HBM3"
  std::string uuid;  // for example "GPU-5b2e..."
  std::string bus;   // PCI address, for example "0000:1b:00.0"
  int multiprocessors = 0;
  int compute_capability = 0;  // 90 for 9.0

  // Returns where the rank's work runs and its memory is.
  Device device() const { return is_gpu ? Device(DeviceKind::cuda, index) : Device::cpu(); }
  // Returns whether the device is a MIG slice of a GPU, as CUDA names it.
  bool is_slice() const { return name.find(" MIG ") != std::string::npos; }
  // Returns "cpu", the GPU's name, or "simulated CUDA device".
  std::string kind_text() const;
  // Returns, for example, "CUDA device 0 (NVIDIA H100 80GB HBM3, GPU-5b2e..., 0000:1b:00.0)".
  std::string text() const;
};

nlohmann::json to_json(const RankDevice& device);
// Throws DataError.
RankDevice rank_device_from_json(const nlohmann::json& json);

}  // namespace trireme
