#include "src/device/cuda_graph.h"

#include <thread>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/device/cuda_device.h"
#include "src/device/pool.h"

namespace trireme {
namespace {

constexpr Device kGraphDevice{DeviceKind::cuda, 0};

class CudaGraphTest : public testing::Test {
 protected:
  void set(const View& view, float value) {
    const std::vector<float> numbers(static_cast<std::size_t>(view.count), value);
    stream_.copy(view, ConstView(numbers.data(), view.count, DType::f32));
  }
  float first_of(const View& view) {
    std::vector<float> numbers(static_cast<std::size_t>(view.count));
    stream_.copy({numbers.data(), view.count, DType::f32}, view);
    stream_.synchronize();
    return numbers.front();
  }

  Pool pool_{kGraphDevice};
  Buffer from_buffer_ = pool_.allocate(400);
  Buffer to_buffer_ = pool_.allocate(400);
  View from_ = from_buffer_.view(DType::f32);
  View to_ = to_buffer_.view(DType::f32);
  Stream stream_{kGraphDevice, 1, cuda::make_queue(0)};
};

TEST_F(CudaGraphTest, RepeatsWhatWasRecordedWithTheMemoryOfThatTime) {
  set(from_, 1);
  set(to_, 0);
  cuda::begin_graph(stream_);
  stream_.copy(to_, from_);
  const std::unique_ptr<cuda::Graph> graph = cuda::end_graph(stream_);
  ASSERT_NE(graph, nullptr);
  EXPECT_EQ(graph->nodes(), 1);
  EXPECT_EQ(first_of(to_), 0);  // nothing was performed
  const std::int64_t before = cuda::device_use().graphs;
  for (const float value : {2.0F, 3.0F}) {
    set(from_, value);
    graph->launch(stream_);
    EXPECT_EQ(first_of(to_), value);
  }
  EXPECT_EQ(cuda::device_use().graphs - before, 2);
}

TEST_F(CudaGraphTest, ARecordingOfNothingIsNoGraph) {
  cuda::begin_graph(stream_);
  EXPECT_EQ(cuda::end_graph(stream_), nullptr);
}

TEST_F(CudaGraphTest, RefusesWhatCannotBeRepeated) {
  float host = 0;
  Stream other(kGraphDevice, 1, cuda::make_queue(0));
  const StreamEvent event = other.record();
  cuda::begin_graph(stream_);
  EXPECT_THROW(stream_.record(), InternalError);
  EXPECT_THROW(stream_.mark(), InternalError);
  EXPECT_THROW(stream_.wait(event), InternalError);
  EXPECT_THROW(stream_.run([] {}), InternalError);
  EXPECT_THROW(stream_.copy(from_.slice(0, 1), ConstView(&host, 1, DType::f32)), InternalError);
  EXPECT_THROW(cuda::begin_graph(stream_), InternalError);
  stream_.copy(to_, from_);
  EXPECT_NE(cuda::end_graph(stream_), nullptr);
}

TEST_F(CudaGraphTest, MemoryIsAllocatedByOtherThreadsAlone) {
  cuda::begin_graph(stream_);
  stream_.copy(to_, from_);
  std::thread([] {
    Pool pool(kGraphDevice);
    (void)pool.allocate(1000);
  }).join();
  EXPECT_NE(cuda::end_graph(stream_), nullptr);

  cuda::begin_graph(stream_);
  EXPECT_THROW(pool_.allocate(1 << 20), DeviceError);
  EXPECT_THROW(cuda::end_graph(stream_), DeviceError);  // the recording is lost
  cuda::begin_graph(stream_);
  EXPECT_THROW(pool_.allocate(1 << 20), DeviceError);
  cuda::abandon_graph(stream_);
  set(from_, 5);  // the stream is as before
  stream_.copy(to_, from_);
  EXPECT_EQ(first_of(to_), 5);
}

}  // namespace
}  // namespace trireme
