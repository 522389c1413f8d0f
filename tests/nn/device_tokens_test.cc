#include "src/nn/device_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/nn/layer_fixture.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

class DeviceTokensTest : public testing::Test {
 protected:
  MicroBatch micro_batch() const {
    return {1, 3, {ids_.data(), 3, DType::i32}, {targets_.data(), 3, DType::i32}};
  }
  std::string refusal(std::int64_t vocab) {
    return message_of<DataError>(
        [&] { const DeviceTokens tokens(layer_.context, micro_batch(), vocab); });
  }

  LayerFixture layer_;
  std::vector<std::int32_t> ids_ = {0, 4, 2};
  std::vector<std::int32_t> targets_ = {4, 2, 9};
};

TEST_F(DeviceTokensTest, ReferToMemoryThatKernelsCanRead) {
  const DeviceTokens tokens(layer_.context, micro_batch(), 10);
  EXPECT_EQ(tokens.micro_batch().ids.data, ids_.data());
  EXPECT_EQ(tokens.micro_batch().targets.data, targets_.data());
  EXPECT_EQ(tokens.micro_batch().time, 3);
  EXPECT_EQ(layer_.context.activations().peak_bytes(), 0);
}

TEST_F(DeviceTokensTest, KeepTheirLease) {
  auto lease = std::make_shared<int>(1);
  {
    const DeviceTokens tokens(layer_.context, micro_batch(), 10, lease);
    EXPECT_EQ(lease.use_count(), 2);
  }
  EXPECT_EQ(lease.use_count(), 1);
}

TEST_F(DeviceTokensTest, NameTheTokenBeyondTheVocabulary) {
  EXPECT_EQ(refusal(9),
            "token 2 of the micro-batch is 9, but model.vocab is 9: the data was packed with a "
            "larger vocabulary than the model has");
  EXPECT_THAT(refusal(4), testing::HasSubstr("token 1 of the micro-batch is 4,")) << "ids first";
  ids_[0] = -1;
  EXPECT_THAT(refusal(10), testing::HasSubstr("token 0 of the micro-batch is -1,"));
}

// Decoding has no targets.
TEST_F(DeviceTokensTest, TargetsMayBeMissing) {
  const DeviceTokens tokens(layer_.context, {1, 3, {ids_.data(), 3, DType::i32}, {}}, 5);
  EXPECT_TRUE(tokens.micro_batch().targets.empty());
}

}  // namespace
}  // namespace trireme
