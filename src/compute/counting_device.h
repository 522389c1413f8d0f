// A counting device (DeviceKind::counting) stands for another one whose memory it counts: for the
// CPU, or for a CUDA device, whose kernels do not read memory of the host and whose ranks are
// connected over NCCL. Pure functions.
#pragma once

#include "src/device/device.h"

namespace trireme {

inline constexpr Device kCountsCpu{DeviceKind::counting, 0};
inline constexpr Device kCountsCuda{DeviceKind::counting, 1};

// Returns whether the device is a CUDA device or stands for one.
constexpr bool acts_as_cuda(Device device) {
  return device.kind == DeviceKind::cuda ||
         (device.kind == kCountsCuda.kind && device.index == kCountsCuda.index);
}

}  // namespace trireme
