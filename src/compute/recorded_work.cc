#include "src/compute/recorded_work.h"

#include <utility>

#include "src/base/check.h"

namespace trireme {

void RecordedWork::repeat(Stream& stream) const {
  for (const Part& part : parts_) {
    if (part.graph != nullptr) {
      part.graph->launch(stream);
    } else {
      part.action();
    }
  }
}

std::int64_t RecordedWork::nodes() const {
  std::int64_t sum = 0;
  for (const Part& part : parts_) {
    sum += part.graph == nullptr ? 0 : part.graph->nodes();
  }
  return sum;
}

RecordedWork GraphRecorder::record(const std::function<void()>& work) {
  check(recording_ == nullptr, "one recording at a time");
  RecordedWork recorded;
  recording_ = &recorded;
  try {
    cuda::begin_graph(stream_);
    work();
    end_segment();
  } catch (...) {
    cuda::abandon_graph(stream_);
    recording_ = nullptr;
    throw;
  }
  recording_ = nullptr;
  return recorded;
}

void GraphRecorder::act(std::function<void()> action) {
  if (recording_ == nullptr) {
    action();
    return;
  }
  end_segment();
  action();
  recording_->parts_.push_back({nullptr, std::move(action)});
  cuda::begin_graph(stream_);
}

// Performs what has been recorded since the last action.
void GraphRecorder::end_segment() {
  std::unique_ptr<cuda::Graph> graph = cuda::end_graph(stream_);
  if (graph != nullptr) {
    graph->launch(stream_);
    recording_->parts_.push_back({std::move(graph), {}});
  }
}

}  // namespace trireme
