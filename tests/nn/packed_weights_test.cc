// A model with packed weights computes with the unpacked ones: its losses are those of a plain
// model whose weights were set to them.
#include "src/nn/packed_weights.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/nn/tiny_model.h"

namespace trireme {
namespace {

struct PackedCase {
  std::string name;
  ModelConfig config;
  int bits;
};

class PackedWeightsTest : public testing::TestWithParam<PackedCase> {
 protected:
  // Sets a weight of the model, and those joined to it, to the unpacked numbers.
  static void round_trip(TinyModel& model, ParameterId id, int bits, bool transposed) {
    const ParameterId end = model.store.end_of_joined(id);
    PackedMatrix matrix;
    matrix.bits = bits;
    matrix.columns = model.store[id].shape()[transposed ? 1 : 0];
    matrix.rows = model.store.joined_elements(id, end - id) / matrix.columns;
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(matrix.code_bytes()));
    std::vector<bf16> scales(static_cast<std::size_t>(matrix.scale_count()));
    const PackedStorage to{{codes.data(), std::ssize(codes), DType::u8},
                           {scales.data(), std::ssize(scales), DType::bf16}};
    matrix.codes = to.codes;
    matrix.scales = to.scales;
    float* const w = as<float>(model.masters->value(id));
    const std::int64_t row_stride = transposed ? matrix.columns : 1;
    const std::int64_t column_stride = transposed ? 1 : matrix.rows;
    pack_matrix(w, row_stride, column_stride, matrix, to, 1);
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      for (std::int64_t column = 0; column < matrix.columns; ++column) {
        w[row * row_stride + column * column_stride] = packed_element(matrix, row, column);
      }
    }
  }
};

TEST_P(PackedWeightsTest, ComputeAsTheUnpackedOnes) {
  const ModelConfig& config = GetParam().config;
  const bool transposed = config.family != Family::gpt2;
  for (const std::string& table : kernel_tables()) {
    TinyModel packed(config, DType::f32, kernels_named(table));
    TinyModel plain(config, DType::f32, kernels_named(table));
    const PackedWeights weights(*packed.masters, packed.model, GetParam().bits, packed.context);
    for (ParameterId id = 0; id < plain.store.count(); id = plain.store.end_of_joined(id)) {
      if (weights.has(id)) {
        const bool output = !plain.store[id].hidden;
        round_trip(plain, id, output ? 8 : GetParam().bits, output || transposed);
      }
    }
    packed.run.packed = &weights;
    for (const std::int64_t time : {1, 3, 11}) {  // few rows, and many
      const Tokens tokens(1, time, config.vocab, 3);
      KeyValueCache cache(packed.context, config, 13, DType::f32);
      KeyValueCache plain_cache(plain.context, config, 13, DType::f32);
      const auto own = packed.context.read<float>(
          packed.model.decode(tokens.micro_batch.ids, cache, packed.run).view());
      const auto expected = plain.context.read<float>(
          plain.model.decode(tokens.micro_batch.ids, plain_cache, plain.run).view());
      for (std::size_t i = 0; i < own.size(); ++i) {
        // Activations are rounded to 8 bits, too, and the rows of a tied embedding are looked up
        // unpacked.
        EXPECT_NEAR(own[i], expected[i], 3e-2) << table;
      }
    }
  }
}

// The store of a model whose matrices are packed holds the rest of the weights alone.
TEST(PackedWeights, TheOtherWeightsStay) {
  ModelConfig config = tiny_llama();
  config.qkv_bias = true;
  TinyModel whole(config, DType::f32, kernels_named("reference"));
  DeviceContext context(Device::cpu(), 1);
  const PackedWeights weights(*whole.masters, whole.model, 8, context);
  ParameterStore store(context, DType::bf16);
  const Model model(config, store);
  store.allocate(weights.needed(store));
  std::int64_t kept = config.vocab * config.hidden + config.hidden;  // embedding, last norm
  kept += config.layers * (2 * config.hidden + config.qkv_width());  // norms, biases
  EXPECT_EQ(store.working_bytes(), 2 * kept);
  EXPECT_EQ(whole.store.working_bytes(), 4 * whole.store.parameter_elements());
  for (ParameterId id = 0; id < store.count(); ++id) {
    const bool is_packed = store[id].hidden || store[id].name == "lm_head.weight";
    if (is_packed) {
      EXPECT_THROW(store.compute(id), InternalError) << store[id].name;
    } else {
      EXPECT_EQ(store.compute(id).count, store[id].elements()) << store[id].name;
    }
  }
}

ModelConfig with_own_head(ModelConfig config) {
  config.tie_embeddings = false;
  return config;
}

INSTANTIATE_TEST_SUITE_P(
    Models, PackedWeightsTest,
    testing::Values(PackedCase{"gpt2_int8", tiny_gpt2(), 8},
                    PackedCase{"gpt2_untied_int4", with_own_head(tiny_gpt2()), 4},
                    PackedCase{"jais_int8", tiny_jais(), 8},
                    PackedCase{"llama_int8", tiny_llama(), 8},
                    PackedCase{"llama_int4", tiny_llama(), 4},
                    PackedCase{"llama_lora_int8", with_adapters(tiny_llama(), {"all"}), 8}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace trireme
