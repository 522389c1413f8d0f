// Tests graphs.
#include "src/device/sim/capture.h"

#include <thread>

#include "tests/device/sim/device_array.h"

namespace trireme {
namespace {

using cuda::kernel_of;
using cuda::launch;

__global__ void scale_by(float* x, float factor) { x[threadIdx.x] *= factor; }
__global__ void add_all(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }

class SimGraph : public testing::Test {
 protected:
  SimGraph() {
    expect_success(cudaStreamCreateWithFlags(&a_, cudaStreamNonBlocking));
    expect_success(cudaStreamCreateWithFlags(&b_, cudaStreamNonBlocking));
    expect_success(cudaEventCreateWithFlags(&fork_, cudaEventDisableTiming));
    expect_success(cudaEventCreateWithFlags(&join_, cudaEventDisableTiming));
  }
  ~SimGraph() override {
    cudaStreamDestroy(a_);
    cudaStreamDestroy(b_);
    cudaEventDestroy(fork_);
    cudaEventDestroy(join_);
  }

  // Enqueues x += 3 y, then x *= 2, with y on the second stream.
  void enqueue(float* x, float* y, bool joins) {
    cudaEventRecord(fork_, a_);
    cudaStreamWaitEvent(b_, fork_);
    launch(kernel_of<scale_by>, 1, 1, 0, b_, y, 3.0F);
    cudaEventRecord(join_, b_);
    if (joins) {
      cudaStreamWaitEvent(a_, join_);
    }
    launch(kernel_of<add_all>, 1, 1, 0, a_, x, y);
    launch(kernel_of<scale_by>, 1, 1, 0, a_, x, 2.0F);
  }

  cudaStream_t a_ = nullptr;
  cudaStream_t b_ = nullptr;
  cudaEvent_t fork_ = nullptr;
  cudaEvent_t join_ = nullptr;
};

TEST_F(SimGraph, ALaunchRepeatsWhatWasCaptured) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5}) {
    const SeedScope scope(seed);
    DeviceArray<float> x(std::vector<float>{0});
    DeviceArray<float> y(std::vector<float>{1});
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
    enqueue(x.data(), y.data(), true);
    expect_success(cudaStreamEndCapture(a_, &graph));
    expect_success(cudaGraphInstantiate(&executable, graph));
    expect_success(cudaGraphDestroy(graph));
    EXPECT_EQ(x.read()[0], 0);  // nothing ran
    for (int round = 0; round < 3; ++round) {
      expect_success(cudaGraphLaunch(executable, a_));
    }
    expect_success(cudaStreamSynchronize(a_));
    EXPECT_EQ(y.read()[0], 27);
    EXPECT_EQ(x.read()[0], 2 * (27 + 2 * (9 + 2 * 3)));
    expect_success(cudaGraphExecDestroy(executable));
  }
}

TEST_F(SimGraph, RefusesWhatADeviceCannotCapture) {
  DeviceArray<float> x(std::vector<float>{0});
  cudaGraph_t graph = nullptr;
  expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  void* memory = nullptr;
  EXPECT_EQ(cudaMalloc(&memory, 64), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);

  expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeRelaxed));
  expect_success(cudaMalloc(&memory, 64));
  expect_success(cudaFree(memory));
  EXPECT_EQ(cudaStreamSynchronize(a_), cudaErrorStreamCaptureUnsupported);
  cudaStreamCaptureStatus status;
  expect_success(cudaStreamIsCapturing(a_, &status));
  EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureUnmatched);
}

// Later changes of what the calls were made with do not reach a graph; those of memory do.
TEST_F(SimGraph, ALaunchHasTheArgumentsOfTheCapture) {
  DeviceArray<float> x(std::vector<float>{1});
  DeviceArray<float> y(std::vector<float>{10});
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  float factor = 3;
  float* target = x.data();
  expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  launch(kernel_of<scale_by>, 1, 1, 0, a_, target, factor);
  launch(kernel_of<add_all>, 1, 1, 0, a_, target, static_cast<const float*>(y.data()));
  expect_success(cudaStreamEndCapture(a_, &graph));
  std::size_t nodes = 0;
  expect_success(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_EQ(nodes, 2U);
  expect_success(cudaGraphInstantiate(&executable, graph));
  expect_success(cudaGraphDestroy(graph));
  factor = 100;
  target = y.data();
  expect_success(cudaGraphLaunch(executable, a_));
  launch(kernel_of<scale_by>, 1, 1, 0, a_, target, factor);
  expect_success(cudaGraphLaunch(executable, a_));
  expect_success(cudaStreamSynchronize(a_));
  EXPECT_EQ(x.read()[0], (1 * 3 + 10) * 3 + 1000);
  expect_success(cudaGraphExecDestroy(executable));
}

TEST_F(SimGraph, RefusesEventsThreadsAndStreamsThatDoNotBelongToTheCapture) {
  DeviceArray<float> x(std::vector<float>{0});
  cudaGraph_t graph = nullptr;
  expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  expect_success(cudaEventRecord(fork_, a_));
  EXPECT_EQ(cudaEventQuery(fork_), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, 4, a_), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureInvalidated);

  expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  std::thread([&] {
    EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureWrongThread);
  }).join();
  expect_success(cudaStreamEndCapture(a_, &graph));
  expect_success(cudaGraphDestroy(graph));

  // The legacy stream and blocking streams wait for each other, which cannot be captured.
  expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  expect_success(cudaMemsetAsync(x.data(), 0, 4, nullptr));
  expect_success(cudaStreamEndCapture(a_, &graph));
  expect_success(cudaGraphDestroy(graph));
  cudaStream_t blocking = nullptr;
  expect_success(cudaStreamCreateWithFlags(&blocking, cudaStreamDefault));
  expect_success(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(cudaMemsetAsync(x.data(), 0, 4, nullptr), cudaErrorStreamCaptureImplicit);
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  cudaStreamDestroy(blocking);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal),
            cudaErrorStreamCaptureUnsupported);
}

TEST_F(SimGraph, RefusesStreamsThatAreNotJoined) {
  DeviceArray<float> x(std::vector<float>{0});
  DeviceArray<float> y(std::vector<float>{1});
  cudaGraph_t graph = nullptr;
  expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  enqueue(x.data(), y.data(), false);
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureUnjoined);
  expect_success(cudaEventRecord(fork_, b_));  // outside of a capture
  expect_success(cudaStreamBeginCapture(a_, cudaStreamCaptureModeThreadLocal));
  EXPECT_EQ(cudaStreamWaitEvent(a_, fork_), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(a_, &graph), cudaErrorStreamCaptureInvalidated);
}

}  // namespace
}  // namespace trireme
