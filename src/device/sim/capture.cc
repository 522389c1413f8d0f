#include "src/device/sim/capture.h"

#include <algorithm>

namespace sim {
namespace {

// One launch of a graph.
class GraphLaunch {
 public:
  explicit GraphLaunch(const GraphNodes& nodes)
      : nodes_(nodes), done_(nodes.size(), false), left_(nodes.size()) {}

  // Performs what can be performed. Returns whether all nodes have finished.
  bool advance() {
    bool has_moved = true;
    while (left_ > 0 && has_moved) {
      has_moved = false;
      std::vector<std::size_t> ready = ready_nodes();
      while (!ready.empty() && !has_moved) {
        const auto at = static_cast<std::ptrdiff_t>(machine().random_below(ready.size()));
        const std::size_t node = ready[static_cast<std::size_t>(at)];
        ready.erase(ready.begin() + at);
        if (nodes_[node].work == nullptr || nodes_[node].work()) {
          done_[node] = true;
          --left_;
          has_moved = true;
        }
      }
    }
    return left_ == 0;
  }

 private:
  std::vector<std::size_t> ready_nodes() const {
    std::vector<std::size_t> ready;
    for (std::size_t at = 0; at < done_.size(); ++at) {
      const auto& after = nodes_[at].after;
      if (!done_[at] && std::all_of(after.begin(), after.end(),
                                    [this](std::size_t before) { return done_[before]; })) {
        ready.push_back(at);
      }
    }
    return ready;
  }

  GraphNodes nodes_;  // of its own, because work has a state
  std::vector<bool> done_;
  std::size_t left_;
};

}  // namespace

cudaError_t capture_work(CUstream_st& stream, Work work) {
  if (!stream.capture->is_valid) {
    return cudaErrorStreamCaptureInvalidated;
  }
  GraphNodes& nodes = stream.capture->nodes;
  nodes.push_back({std::move(work), stream.tail});
  stream.tail = {nodes.size() - 1};
  return cudaSuccess;
}

cudaError_t capture_wait(CUstream_st& stream, const CUevent_st& event) {
  if (event.capture != nullptr && event.capture->has_ended) {
    return cudaErrorInvalidValue;
  }
  if (event.capture == nullptr || (stream.capture != nullptr && stream.capture != event.capture)) {
    stream.capture->is_valid = false;
    return cudaErrorStreamCaptureIsolation;
  }
  if (stream.capture == nullptr) {
    stream.capture = event.capture;
    stream.tail.clear();
  }
  for (const std::size_t node : event.tail) {
    if (std::find(stream.tail.begin(), stream.tail.end(), node) == stream.tail.end()) {
      stream.tail.push_back(node);
    }
  }
  return cudaSuccess;
}

cudaError_t refuse_during_capture() {
  const std::lock_guard lock(machine().mutex);
  std::erase_if(machine().captures, [](const auto& one) { return one.expired(); });
  for (const auto& one : machine().captures) {
    const std::shared_ptr<Capture> capture = one.lock();
    const bool is_own = capture->thread == std::this_thread::get_id();
    if (capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && is_own)) {
      capture->is_valid = false;
      return cudaErrorStreamCaptureUnsupported;
    }
  }
  return cudaSuccess;
}

bool are_joined(const GraphNodes& nodes, const std::vector<std::size_t>& tail) {
  std::vector<bool> reached(nodes.size(), false);
  for (const std::size_t node : tail) {
    reached[node] = true;
  }
  for (std::size_t at = nodes.size(); at-- > 0;) {  // nodes come after those that they wait for
    if (!reached[at]) {
      return false;
    }
    for (const std::size_t before : nodes[at].after) {
      reached[before] = true;
    }
  }
  return true;
}

Work launch_of(const GraphNodes& nodes) {
  auto run = std::make_shared<GraphLaunch>(nodes);
  return [run] { return run->advance(); };
}

}  // namespace sim
