// Times work of a CUDA device by the device's own clock. Linked like src/device/cuda_device.h.
#pragma once

#include <functional>

#include "src/device/stream.h"

namespace trireme::cuda {

// Calls `work`, which puts work on the stream, and returns the seconds from the start of that work
// on the device to its end. Waits for it. Throws ConfigError in a program without CUDA.
double device_seconds(Stream& stream, const std::function<void()>& work);

}  // namespace trireme::cuda
