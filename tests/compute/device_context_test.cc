#include "src/compute/device_context.h"

#include <numeric>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/compute/counting_device.h"
#include "src/compute/kernel_choice.h"

namespace trireme {
namespace {

constexpr std::int64_t kTerabyte = std::int64_t{1} << 40;

TEST(DeviceContext, WritesToTheDeviceAndReadsBack) {
  DeviceContext context(Device::cpu(), 2);
  const Buffer buffer = context.activations().allocate(5 * sizeof(float));
  context.write<float>(buffer.view(DType::f32), [](float* x) { std::iota(x, x + 5, 1.5F); });
  EXPECT_EQ(context.read<float>(buffer.view(DType::f32)),
            (std::vector<float>{1.5F, 2.5F, 3.5F, 4.5F, 5.5F}));
  context.stream().clear(buffer.view(DType::f32).slice(1, 2));
  EXPECT_EQ(context.read<float>(buffer.view(DType::f32)),
            (std::vector<float>{1.5F, 0, 0, 4.5F, 5.5F}));
}

TEST(DeviceContext, ReadsAfterTheWorkThatIsQueued) {
  DeviceContext context(Device::cpu(), 1);
  const Buffer buffer = context.state().allocate(3 * sizeof(float));
  const View view = buffer.view(DType::f32);
  context.kernels().fill(context.stream(), view, 7);
  EXPECT_EQ(context.read<float>(view), (std::vector<float>{7, 7, 7}));
  EXPECT_THROW((void)context.read<std::int32_t>(view), InternalError) << "of another type";
}

// Two of the four pools take memory that other ranks read.
TEST(DeviceContext, TakesExchangedMemoryFromItsSource) {
  class Counted : public MemorySource {
   public:
    void* take(std::int64_t bytes) override {
      ++pieces;
      return host_memory().take(bytes);
    }
    void give_back(void* data, std::int64_t bytes) noexcept override {
      host_memory().give_back(data, bytes);
    }
    int pieces = 0;
  } source;
  DeviceContext context(Device::cpu(), 1, source);
  const Buffer own = context.activations().allocate(10);
  const Buffer state = context.state().allocate(10);
  EXPECT_EQ(source.pieces, 0);
  const Buffer exchanged = context.exchange().allocate(10);
  const Buffer exchanged_state = context.exchange_state().allocate(10);
  EXPECT_EQ(source.pieces, 2);
}

TEST(DeviceContext, ACountingDeviceHasSizesAndNoBytes) {
  DeviceContext context(kCountsCpu, 1);
  const Buffer buffer = context.activations().allocate(kTerabyte);
  EXPECT_EQ(context.activations().reserved_bytes(), kTerabyte);
  const View view = buffer.view(DType::f32);
  EXPECT_THROW((void)as<float>(view), InternalError) << "nobody may dereference it";
  EXPECT_THROW((void)as<float>(ConstView(view)), InternalError);
  context.kernels().fill(context.stream(), view, 1);
  context.stream().clear(view);
  bool called = false;
  context.write<float>(view, [&](float*) { called = true; });
  EXPECT_FALSE(called);
  EXPECT_EQ(context.read<float>(view.slice(0, 2)), (std::vector<float>{0, 0}));
}

TEST(DeviceContext, CannotBeMadeForABackEndThatIsNotBuilt) {
  EXPECT_THROW(DeviceContext(Device{DeviceKind::cuda, 0}, 1), ConfigError);
}

}  // namespace
}  // namespace trireme
