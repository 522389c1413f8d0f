// Counts the calls that make the host wait for a device, those that take memory, those that launch
// graphs, and copies of memory that is not pinned (DeviceUse in cuda_device.h). Callable from any
// thread.
#pragma once

namespace trireme::cuda {

void count_wait();
void count_allocation();
void count_graph_launch();
void count_staged_copy();

}  // namespace trireme::cuda
