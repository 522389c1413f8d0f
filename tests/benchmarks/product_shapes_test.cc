#include "benchmarks/gemm/product_shapes.h"

#include <gtest/gtest.h>

#include "src/train/run/model_presets.h"

namespace trireme {
namespace {

// GPT-2 124M: 12 blocks of 7,077,888 weights each and a head of 50,257 x 768.
TEST(ProductShapes, AddUpToTheWeightsOfAModel) {
  const ModelConfig model = preset_model_config("gpt2-124m");
  constexpr std::int64_t kTokens = 1024;
  double block = 0;
  double head = 0;
  for (const ProductShape& shape : model_shapes(model, kTokens)) {
    if (shape.pass == "forward") {
      (shape.name == "head" ? head : block) += shape.flops();
    }
  }
  EXPECT_EQ(block, 2.0 * kTokens * 7'077'888);
  EXPECT_EQ(head, 2.0 * kTokens * 50'257 * 768);
}

TEST(ProductShapes, EveryPassOfALayerCostsTheSame) {
  for (const char* name : {"gpt2-124m", "llama-1b"}) {
    const auto shapes = model_shapes(preset_model_config(name), 512);
    ASSERT_EQ(shapes.size(), 15U);
    for (std::size_t i = 0; i < shapes.size(); i += 3) {
      EXPECT_EQ(shapes[i].pass, "forward");
      EXPECT_EQ(shapes[i + 1].pass, "data_gradient");
      EXPECT_EQ(shapes[i + 2].pass, "weight_gradient");
      EXPECT_EQ(shapes[i].flops(), shapes[i + 1].flops());
      EXPECT_EQ(shapes[i].flops(), shapes[i + 2].flops());
      EXPECT_EQ(shapes[i + 2].k, 512);
      EXPECT_EQ(shapes[i + 2].result(DType::bf16), DType::f32);
      EXPECT_EQ(shapes[i].result(DType::bf16), DType::bf16);
    }
  }
}

// GPT-2 stores weights as [in,out], Llama as [out,in]; so does the gradient of a weight.
TEST(ProductShapes, FollowTheLayoutOfTheWeights) {
  const auto gpt2 = model_shapes(preset_model_config("gpt2-124m"), 64);
  EXPECT_FALSE(gpt2[0].transpose_b);
  EXPECT_TRUE(gpt2[1].transpose_b);
  EXPECT_EQ(gpt2[2].m, 768);
  EXPECT_EQ(gpt2[2].n, 3 * 768);
  const ModelConfig config = preset_model_config("llama-1b");
  const auto llama = model_shapes(config, 64);
  EXPECT_TRUE(llama[0].transpose_b);
  EXPECT_FALSE(llama[1].transpose_b);
  EXPECT_EQ(llama[2].m, config.qkv_width());
  EXPECT_EQ(llama[2].n, config.hidden);
}

TEST(ProductShapes, CountBytes) {
  EXPECT_EQ(square_shape(8).bytes(DType::bf16), 3 * 64 * 2);
  const ProductShape gradient{"x", "weight_gradient", 2, 3, 5, true, false};
  EXPECT_EQ(gradient.bytes(DType::bf16), 2 * (10 + 15) + 4 * 6);
}

}  // namespace
}  // namespace trireme
