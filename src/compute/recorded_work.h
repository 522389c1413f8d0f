// RecordedWork is work of a stream that is recorded once and then repeated: graphs of a CUDA device
// (src/device/cuda_graph.h), and between them actions of the host, such as operations of a
// communicator. GraphRecorder records it. Owned by the code that repeats the work, and used by the
// thread of the stream, which outlives both.
//
//   RecordedWork work = recorder.record([&] { layer.forward(...); });   performs it once
//   work.repeat(stream);                                                performs all of it again
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "src/device/cuda_graph.h"
#include "src/device/stream.h"

namespace trireme {

class RecordedWork {
 public:
  bool empty() const { return parts_.empty(); }
  // Performs graphs and actions in their order.
  void repeat(Stream& stream) const;
  // Returns the number of kernels, copies and fills in the graphs.
  std::int64_t nodes() const;

 private:
  friend class GraphRecorder;
  struct Part {  // one of the two
    std::unique_ptr<cuda::Graph> graph;
    std::function<void()> action;
  };
  std::vector<Part> parts_;
};

class GraphRecorder {
 public:
  explicit GraphRecorder(Stream& stream) : stream_(stream) {}
  GraphRecorder(const GraphRecorder&) = delete;
  GraphRecorder& operator=(const GraphRecorder&) = delete;

  // Calls `work`, which uses the stream, and returns what is needed to repeat it. What the stream
  // gets is performed once. If `work` throws, the recording is dropped.
  RecordedWork record(const std::function<void()>& work);
  // Performs an action of the host, between the graphs if this is called by recorded work; it is
  // then performed again at each repetition. It may use the stream in any way.
  void act(std::function<void()> action);

 private:
  void end_segment();

  Stream& stream_;
  RecordedWork* recording_ = nullptr;  // null: nothing is being recorded
};

}  // namespace trireme
