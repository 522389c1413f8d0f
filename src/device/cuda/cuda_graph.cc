#include "src/device/cuda_graph.h"

#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_counts.h"
#include "src/device/cuda/cuda_queue.h"

namespace trireme::cuda {
namespace {

class CudaGraph : public Graph {
 public:
  // Destroys `recorded` in any case.
  explicit CudaGraph(cudaGraph_t recorded) {
    std::size_t count = 0;
    cudaError_t error = cudaGraphGetNodes(recorded, nullptr, &count);
    if (error == cudaSuccess && count > 0) {
      error = cudaGraphInstantiate(&executable_, recorded, 0);
    }
    (void)cudaGraphDestroy(recorded);
    cuda_check(error, "cudaGraphInstantiate");
    nodes_ = static_cast<std::int64_t>(count);
  }
  // A launch that is under way keeps what it needs.
  ~CudaGraph() override {
    if (executable_ != nullptr) {
      (void)cudaGraphExecDestroy(executable_);
    }
  }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void launch(Stream& stream) override {
    count_graph_launch();
    cuda_check(cudaGraphLaunch(executable_, cuda_stream(stream)), "cudaGraphLaunch");
  }
  std::int64_t nodes() const override { return nodes_; }

 private:
  cudaGraphExec_t executable_ = nullptr;
  std::int64_t nodes_ = 0;
};

CudaQueue& queue_of(Stream& stream) {
  (void)cuda_stream(stream);  // checks the kind, and makes the device that of this thread
  return static_cast<CudaQueue&>(*stream.queue());
}

}  // namespace

void begin_graph(Stream& stream) { queue_of(stream).begin_capture(); }

std::unique_ptr<Graph> end_graph(Stream& stream) {
  auto graph = std::make_unique<CudaGraph>(queue_of(stream).end_capture());
  return graph->nodes() > 0 ? std::move(graph) : nullptr;
}

void abandon_graph(Stream& stream) noexcept {
  static_cast<CudaQueue&>(*stream.queue()).abandon_capture();
}

}  // namespace trireme::cuda
