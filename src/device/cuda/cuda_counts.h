// Counts the calls that make the host wait for a device, those that take memory, and those that
// launch graphs (DeviceUse in cuda_device.h). Callable from any thread.
#pragma once

namespace trireme::cuda {

void count_wait();
void count_allocation();
void count_graph_launch();

}  // namespace trireme::cuda
