#include "src/train/saving/host_mirror.h"

#include <algorithm>
#include <future>
#include <numeric>

#include <gtest/gtest.h>

#include "src/tensor/tensor.h"

namespace trireme {
namespace {

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kColumns = 10;

// Returns a block of columns of a matrix [kRows, kColumns] of which `data` holds all.
TensorBlock columns(const char* name, const View& data, std::int64_t first, std::int64_t width) {
  TensorBlock block{name, {kRows, width}, Extent::whole({kRows, width}), {}, kColumns};
  block.data = data.slice(first, (kRows - 1) * kColumns + width);
  return block;
}

std::vector<float> counted_up() {
  std::vector<float> numbers(kRows * kColumns);
  std::iota(numbers.begin(), numbers.end(), 1.0F);
  return numbers;
}

void fill(DeviceContext& context, const View& view) {
  context.write<float>(view, [](float* to) {
    const std::vector<float> numbers = counted_up();
    std::copy(numbers.begin(), numbers.end(), to);
  });
}

TEST(HostMirror, ReturnsTheBlocksOfTheHostAsTheyAre) {
  DeviceContext context(Device::cpu(), 1);
  const Tensor matrix(context.state(), {kRows, kColumns}, DType::f32);
  fill(context, matrix.view());
  HostMirror mirror(context);
  const auto blocks = mirror.fetch({columns("a", matrix.view(), 0, kColumns)});
  EXPECT_EQ(blocks.front().data.data, matrix.view().data);
}

// The rows of the two blocks alternate in memory, so that each block's span contains elements of
// the other.
TEST(HostMirror, MovesBlocksWhoseRowsAlternate) {
  DeviceContext context({DeviceKind::cuda, 0}, 1);
  const Tensor matrix(context.state(), {kRows, kColumns}, DType::f32);
  const Tensor vector(context.state(), {7}, DType::f32);
  fill(context, matrix.view());
  context.kernels().fill(context.stream(), vector.view(), 2.5F);
  HostMirror mirror(context);
  const std::vector<TensorBlock> blocks =
      mirror.fetch({columns("left", matrix.view(), 0, 4),
                    columns("right", matrix.view(), 4, 6),
                    {"vector", {7}, Extent::whole({7}), vector.view()}});
  ASSERT_EQ(blocks.size(), 3U);
  for (const TensorBlock& block : blocks) {
    check_block(block);
  }
  const std::vector<float> numbers = counted_up();
  const auto* const left = as<float>(blocks[0].data);
  auto* const right = as<float>(blocks[1].data);
  EXPECT_EQ(std::vector<float>(left, left + 4), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(right[kColumns], numbers[kColumns + 4]);
  EXPECT_EQ(as<float>(blocks[2].data)[6], 2.5F);

  right[0] = 100;
  as<float>(blocks[0].data)[kColumns] = 200;
  mirror.store();
  std::vector<float> expected = numbers;
  expected[4] = 100;
  expected[kColumns] = 200;
  EXPECT_EQ(context.read<float>(matrix.view()), expected);
  EXPECT_EQ(context.read<float>(vector.view()), std::vector<float>(7, 2.5F));
}

TEST(HostMirror, CopiesBesideLaterWork) {
  DeviceContext context({DeviceKind::cuda, 0}, 1);
  const Tensor matrix(context.state(), {kRows, kColumns}, DType::f32);
  fill(context, matrix.view());
  std::promise<void> open;  // holds up the work before the copy
  context.stream().run([&] { open.get_future().wait(); });
  HostMirror mirror(context);
  HostMirror::Copy copy = mirror.start({columns("all", matrix.view(), 0, kColumns)});
  EXPECT_FALSE(copy.done.reached());
  context.stream().wait(copy.done);
  context.kernels().fill(context.stream(), matrix.view(), -1);
  open.set_value();
  copy.ready();
  context.stream().synchronize();
  const auto* const copied = as<float>(copy.blocks.front().data);
  EXPECT_EQ(std::vector<float>(copied, copied + kRows * kColumns), counted_up());
}

}  // namespace
}  // namespace trireme
