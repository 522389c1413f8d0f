// Graphs, and their capture from streams. A graph keeps which of its operations depend on which,
// and each launch performs them in an order of the seed's that the dependencies allow.
#pragma once

#include <thread>
#include <vector>

#include <driver_types.h>

#include "src/device/sim/machine.h"

namespace sim {

struct GraphNode {
  Work work;
  std::vector<std::size_t> after;  // nodes that it waits for
};
using GraphNodes = std::vector<GraphNode>;

// Guarded by the machine's mutex.
struct Capture {
  GraphNodes nodes = {};
  const CUstream_st* origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread = std::this_thread::get_id();
  bool is_valid = true;
  bool has_ended = false;
};

// Appends the operation of a capturing stream to its graph. Refused once the capture is invalid.
cudaError_t capture_work(CUstream_st& stream, Work work);
cudaError_t capture_wait(CUstream_st& stream, const CUevent_st& event);

// Returns an error, which also invalidates the capture, if one is under way that forbids the
// calling thread to allocate memory or to wait for a device.
cudaError_t refuse_during_capture();

// Returns whether all nodes come before the given ones.
bool are_joined(const GraphNodes& nodes, const std::vector<std::size_t>& tail);

// Returns the work of one launch.
Work launch_of(const GraphNodes& nodes);

}  // namespace sim

struct CUgraph_st {
  sim::GraphNodes nodes;
};
struct CUgraphExec_st {
  sim::GraphNodes nodes;
};
