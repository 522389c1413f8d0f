#include "src/nn/key_value_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/compute/kernel_choice.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

// Returns a model of two layers with two query heads and one key-value head of width 3.
ModelConfig grouped_config() {
  ModelConfig config;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 3;
  config.context = 7;
  return config;
}

TEST(KeyValueCache, HoldsPackedRowsOfEachLayer) {
  DeviceContext context(kernels_named("reference"), 1);
  const KeyValueCache cache(context, grouped_config(), 7, DType::f32);
  EXPECT_EQ(cache.rows(0).count, 7 * (2 + 1 + 1) * 3);
  EXPECT_EQ(cache.rows(1).count, cache.rows(0).count);
  const auto* first = as<float>(cache.rows(0));
  const auto* second = as<float>(cache.rows(1));
  EXPECT_TRUE(first + cache.rows(0).count <= second || second + cache.rows(1).count <= first);
}

TEST(KeyValueCache, HasRoomForTheContextAtMost) {
  DeviceContext context(kernels_named("reference"), 1);
  EXPECT_NO_THROW(KeyValueCache(context, grouped_config(), 1, DType::bf16));
  for (const std::int64_t capacity : {0, -1, 8}) {
    EXPECT_THAT(message_of<ConfigError>(
                    [&] { KeyValueCache(context, grouped_config(), capacity, DType::f32); }),
                testing::HasSubstr(fmt::format(
                    "{} tokens do not fit: the model's context is 7 tokens", capacity)));
  }
}

TEST(KeyValueCache, GoesBackToTokensThatItHolds) {
  DeviceContext context(kernels_named("reference"), 1);
  KeyValueCache cache(context, grouped_config(), 7, DType::f32);
  cache.advance(3);
  cache.advance(2);
  EXPECT_EQ(cache.length(), 5);
  cache.truncate(4);
  EXPECT_EQ(cache.length(), 4);
  EXPECT_THROW(cache.truncate(5), InternalError);
  EXPECT_THROW(cache.truncate(-1), InternalError);
  cache.truncate(0);
  EXPECT_EQ(cache.length(), 0);
}

}  // namespace
}  // namespace trireme
