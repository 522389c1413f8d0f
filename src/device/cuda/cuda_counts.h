// Counts the calls that make the host wait for a device, and those that take memory (DeviceUse in
// cuda_device.h). Callable from any thread.
#pragma once

namespace trireme::cuda {

void count_wait();
void count_allocation();

}  // namespace trireme::cuda
