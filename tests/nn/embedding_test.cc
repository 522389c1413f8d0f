// Tests embeddings of four ids with two channels. The numbers show from which row they come.
#include "src/nn/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/nn/key_value_cache.h"
#include "tests/nn/layer_fixture.h"

namespace trireme {
namespace {

using testing::ElementsAre;

class EmbeddingTest : public testing::Test {
 protected:
  // The micro-batch has ids [2,2] out of four tokens. There are three positions.
  EmbeddingTest() {
    embedding_.token = layer_.add("wte", {4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
    embedding_.position = layer_.add("wpe", {3, 2}, {100, 200, 300, 400, 500, 600});
    embedding_.vocabulary = {0, 4};
    embedding_.channels = 2;
    layer_.begin();
    micro_batch_ = {2, 2, {ids_.data(), 4, DType::i32}, {}};
    layer_.run.batch = layer_.run.time = 2;
  }
  GatheredRows gradient(const Floats& values) {
    return {layer_.tensor({2, 2, 2}, values), layer_.run};
  }

  LayerFixture layer_;
  Embedding embedding_;
  std::vector<std::int32_t> ids_ = {3, 0, 1, 3};
  MicroBatch micro_batch_;
};

TEST_F(EmbeddingTest, AddsTheRowsOfTokensAndPositions) {
  const Residual stream = embedding_.forward(micro_batch_, layer_.run);
  EXPECT_EQ(values_of(stream.x), (Floats{130, 231, 300, 401, 110, 211, 330, 431}));
  EXPECT_TRUE(stream.delta.empty());
}

TEST_F(EmbeddingTest, ScalesTheSumAndItsGradient) {
  embedding_.scale = 0.5F;
  EXPECT_EQ(values_of(embedding_.forward(micro_batch_, layer_.run).x),
            (Floats{65, 115.5, 150, 200.5, 55, 105.5, 165, 215.5}));
  const Tensor d = layer_.tensor({2, 2, 2}, Floats(8, 3));
  embedding_.backward_sum(d, layer_.run);
  EXPECT_EQ(values_of(d), Floats(8, 1.5));
}

TEST_F(EmbeddingTest, RotaryModelsHaveTokensAlone) {
  embedding_.position = kNoParameter;
  EXPECT_EQ(values_of(embedding_.forward(micro_batch_, layer_.run).x),
            (Floats{30, 31, 0, 1, 10, 11, 30, 31}));
  embedding_.backward_positions(micro_batch_, gradient(Floats(8, 1)), layer_.run);
  EXPECT_TRUE(layer_.announced.empty());
}

TEST_F(EmbeddingTest, PositionsGoOnWhereTheCacheEnds) {
  ModelConfig config;
  config.layers = 1;
  config.heads = config.kv_heads = config.head_dim = 1;
  config.context = 3;
  KeyValueCache cache(layer_.context, config, 3, DType::f32);
  cache.advance(1);
  layer_.run.cache = &cache;
  const MicroBatch two = {1, 2, {ids_.data(), 2, DType::i32}, {}};
  EXPECT_EQ(values_of(embedding_.forward(two, layer_.run).x), (Floats{330, 431, 500, 601}));
}

TEST_F(EmbeddingTest, GradientsOfTokensAddUpById) {
  const Floats d = {1, 2, 10, 20, 100, 200, 1000, 2000};
  embedding_.backward_tokens(micro_batch_, gradient(d), true, layer_.run);
  EXPECT_EQ(layer_.gradient(0), (Floats{10, 20, 100, 200, 0, 0, 1001, 2002}));
  EXPECT_THAT(layer_.announced, ElementsAre(embedding_.token));
  // With tied embeddings, the head has already written its part of the gradient.
  embedding_.backward_tokens(micro_batch_, gradient(d), false, layer_.run);
  EXPECT_EQ(layer_.gradient(0), (Floats{20, 40, 200, 400, 0, 0, 2002, 4004}));
}

TEST_F(EmbeddingTest, GradientsOfPositionsAddUpOverTheBatch) {
  embedding_.backward_positions(micro_batch_, gradient({1, 2, 10, 20, 100, 200, 1000, 2000}),
                                layer_.run);
  EXPECT_EQ(layer_.gradient(1), (Floats{101, 202, 1010, 2020, 0, 0}));
  EXPECT_THAT(layer_.announced, ElementsAre(embedding_.position));
}

TEST_F(EmbeddingTest, DropoutIsOfTrainingAloneAndTheSameInBothDirections) {
  embedding_.dropout = 0.5F;
  const Floats whole = values_of(embedding_.forward(micro_batch_, layer_.run).x);
  EXPECT_EQ(whole, (Floats{130, 231, 300, 401, 110, 211, 330, 431}));
  layer_.run.training = true;
  layer_.run.dropout = {5, 6};
  const Floats dropped = values_of(embedding_.forward(micro_batch_, layer_.run).x);
  const Tensor d = layer_.tensor({2, 2, 2}, Floats(8, 1));
  embedding_.backward_sum(d, layer_.run);
  const Floats mask = values_of(d);
  EXPECT_THAT(mask, testing::Contains(0.0F));
  EXPECT_THAT(mask, testing::Contains(2.0F));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(dropped[i], whole[i] * mask[i]) << i;
  }
}

}  // namespace
}  // namespace trireme
