#include "src/train/saving/finite_check.h"

#include <limits>

#include <gtest/gtest.h>

#include "src/compute/kernel_choice.h"

namespace trireme {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kElements = 3 * kSumBlock + 5;

// Returns the fault of two tensors, the second of which holds `value` once.
std::string fault_with(const char* name, float value, FiniteCheck check) {
  DeviceContext context(Device::cpu(), 1);
  std::string fault;
  for (const std::int64_t at : {std::int64_t{0}, kSumBlock + 1, kElements - 1}) {
    std::vector<float> good(10, 3e38F);
    std::vector<float> bad(kElements, -1e-40F);
    bad[static_cast<std::size_t>(at)] = value;
    const std::vector<TensorBlock> blocks = {
        {"a", {10}, Extent::whole({10}), {good.data(), 10, DType::f32}},
        {name, {kElements}, Extent::whole({kElements}), {bad.data(), kElements, DType::f32}}};
    const std::string found = fault_of_numbers(context, blocks, check);
    EXPECT_TRUE(at == 0 || found == fault) << at;
    fault = found;
  }
  return fault;
}

TEST(FiniteCheck, FindsWeightsThatAreNoNumbers) {
  EXPECT_EQ(fault_with("b", 3.4e38F, FiniteCheck::weights), "");
  EXPECT_EQ(fault_with("b", kNan, FiniteCheck::weights), "b contains NaN");
  EXPECT_EQ(fault_with("b", -kInfinity, FiniteCheck::weights), "b contains infinity");
}

TEST(FiniteCheck, AllowsInfiniteSquaresInTheStateOfTheOptimizer) {
  EXPECT_EQ(fault_with("optimizer.v.b", kInfinity, FiniteCheck::all), "");
  EXPECT_EQ(fault_with("optimizer.v.b", kNan, FiniteCheck::weights), "");
  EXPECT_EQ(fault_with("optimizer.v.b", kNan, FiniteCheck::all), "optimizer.v.b contains NaN");
}

TEST(FiniteCheck, FindsNegativeSecondMoments) {
  std::vector<float> moments(7, 0.0F);
  const std::vector<TensorBlock> blocks = {
      {"optimizer.m.a", {7}, Extent::whole({7}), {moments.data(), 7, DType::f32}},
      {"optimizer.v.a", {7}, Extent::whole({7}), {moments.data(), 7, DType::f32}}};
  moments[2] = -0.0F;
  moments[3] = kInfinity;
  EXPECT_EQ(fault_of_moments(blocks), "");
  moments[6] = -1e-40F;
  EXPECT_EQ(fault_of_moments(blocks), "optimizer.v.a contains a negative second moment");
  EXPECT_EQ(fault_of_moments({blocks.front()}), "");  // first moments have either sign
}

TEST(FiniteCheck, FindsInfinityInAnAverageOfTheWeights) {
  EXPECT_EQ(fault_with("optimizer.ema.b", kInfinity, FiniteCheck::finite),
            "optimizer.ema.b contains infinity");
  EXPECT_EQ(fault_with("optimizer.ema.b", 3.4e38F, FiniteCheck::finite), "");
}

}  // namespace
}  // namespace trireme
