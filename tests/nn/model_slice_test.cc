// Tests which part of each layer a tensor-parallel rank holds, and which degrees are possible.
#include "src/nn/model_slice.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/nn/model_parts.h"
#include "tests/nn/tiny_model.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The model has 8 heads, 2 key-value heads, 21 hidden units and 37 ids.
ModelConfig grouped() {
  ModelConfig config = tiny_llama();
  config.heads = 8;
  config.kv_heads = 2;
  config.ffn = 21;
  return config;
}

TEST(TensorShare, OfAllRanksIsEverythingOnce) {
  for (const int ranks : {1, 2, 4, 8}) {
    std::int64_t heads = 0;
    std::int64_t ffn = 0;
    std::int64_t ids = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const TensorShare share = tensor_share(grouped(), rank, ranks);
      EXPECT_EQ(share.heads, (IndexRange{heads, 8 / ranks}));
      EXPECT_EQ(share.ffn.first, ffn);
      EXPECT_EQ(share.vocabulary.first, ids);
      heads += share.heads.count;
      ffn += share.ffn.count;
      ids += share.vocabulary.count;
      // A rank holds the keys of its own query heads.
      EXPECT_EQ(share.kv_heads.first, share.heads.first / 4);
      EXPECT_EQ(share.kv_heads.end(), (share.heads.end() - 1) / 4 + 1);
    }
    EXPECT_EQ(heads, 8);
    EXPECT_EQ(ffn, 21);
    EXPECT_EQ(ids, 37);
  }
}

TEST(TensorShare, CountsTheCopiesOfKeys) {
  EXPECT_EQ(tensor_share(grouped(), 0, 1).kv_copies, 1);
  EXPECT_EQ(tensor_share(grouped(), 0, 2).kv_copies, 1);
  EXPECT_EQ(tensor_share(grouped(), 0, 4).kv_copies, 2);
  EXPECT_EQ(tensor_share(grouped(), 0, 8).kv_copies, 4);
  EXPECT_EQ(tensor_share(grouped(), 5, 8).kv_heads, (IndexRange{1, 1}));
}

TEST(TensorShare, RefusesDegreesWithThoseThatWork) {
  ModelConfig config = grouped();
  EXPECT_THAT(message_of<ConfigError>([&] { tensor_share(config, 0, 3); }),
              testing::AllOf(HasSubstr("model.heads 8 is not a multiple of parallel.tp 3 "
                                       "(remainder 2)"),
                             HasSubstr("work here: 1, 2, 4, 8")));
  config.ffn = 3;
  EXPECT_THAT(message_of<ConfigError>([&] { tensor_share(config, 0, 4); }),
              testing::AllOf(HasSubstr("model.ffn 3 or model.vocab 37 is less than parallel.tp 4"),
                             HasSubstr("work here: 1, 2")));
  config.ffn = 4;
  EXPECT_TRUE(tensor_degree_works(config, 4));
  EXPECT_FALSE(tensor_degree_works(config, 8));
  config.ffn = 21;
  config.vocab = 7;
  EXPECT_FALSE(tensor_degree_works(config, 8));
}

ParameterStore declare(const ModelConfig& config, const ModelSlice& slice, DeviceContext& context) {
  ParameterStore store(context, DType::f32);
  (void)build_parts(config, slice, store);
  return store;
}

const Parameter& named(const ParameterStore& store, const std::string& name) {
  const auto& all = store.all();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Parameter& each) { return each.name == name; });
  check(found != all.end(), "the model declares it");
  return *found;
}

ModelSlice part(const ModelConfig& config, int rank, int ranks) {
  ModelSlice slice = ModelSlice::whole(config);
  slice.tensor_rank = rank;
  slice.tensor_ranks = ranks;
  return slice;
}

TEST(ModelParts, EveryElementHasOnePrimaryRank) {
  for (const ModelConfig& config : {tiny_gpt2(), tiny_llama()}) {
    std::map<std::string, std::vector<int>> primaries;
    for (int rank = 0; rank < 3; ++rank) {
      DeviceContext context(kernels_named("reference"), 1);
      const ParameterStore store = declare(config, part(config, rank, 3), context);
      for (const Parameter& p : store.all()) {
        std::vector<int>& of = primaries[p.name];
        of.resize(static_cast<std::size_t>(p.place.whole.elements()));
        for (const HeldRun& run : runs_of(p.place, 0, p.elements())) {
          for (std::int64_t i = 0; i < run.elements; ++i) {
            of[static_cast<std::size_t>(run.whole_first + i)] += p.place.primary ? 1 : 0;
          }
        }
      }
    }
    for (const auto& [name, of] : primaries) {
      EXPECT_THAT(of, testing::Each(1)) << name;
    }
  }
}

TEST(ModelParts, MuonAndWeightDecayKnowTheirMatrices) {
  DeviceContext context(kernels_named("reference"), 1);
  const ModelConfig config = tiny_gpt2();
  const ParameterStore store = declare(config, ModelSlice::whole(config), context);
  for (const Parameter& p : store.all()) {
    const bool is_matrix = p.place.whole.rank() == 2;
    EXPECT_EQ(p.decays, is_matrix) << p.name;
    EXPECT_EQ(p.hidden, is_matrix && p.name.find(".h.") != std::string::npos) << p.name;
    EXPECT_TRUE(p.trained) << p.name;
  }
  EXPECT_EQ(named(store, "transformer.ln_f.weight").initializer.kind, Initializer::Kind::ones);
  EXPECT_EQ(named(store, "transformer.ln_f.bias").initializer.kind, Initializer::Kind::zeros);
  // Only the projections into the stream have the smaller deviation, 0.02 / sqrt(2 x 2 layers).
  EXPECT_FLOAT_EQ(named(store, "transformer.h.0.attn.c_proj.weight").initializer.deviation, 0.01F);
  EXPECT_FLOAT_EQ(named(store, "transformer.h.0.mlp.c_fc.weight").initializer.deviation, 0.02F);
}

TEST(ModelParts, ATiedMatrixIsTrainedWhereTheHeadIs) {
  DeviceContext context(kernels_named("reference"), 1);
  ModelConfig config = tiny_gpt2();
  config.tie_embeddings = true;
  ModelSlice first = ModelSlice::whole(config);
  first.end = 2;
  ModelSlice last = ModelSlice::whole(config);
  last.first = 2;
  EXPECT_FALSE(named(declare(config, first, context), "transformer.wte.weight").trained);
  EXPECT_TRUE(named(declare(config, last, context), "transformer.wte.weight").trained);
  config.tie_embeddings = false;
  EXPECT_TRUE(named(declare(config, first, context), "transformer.wte.weight").trained);
  EXPECT_TRUE(named(declare(config, last, context), "lm_head.weight").trained);
}

TEST(ModelParts, RecomputedBlocksAreOneLayer) {
  ModelConfig config = tiny_gpt2();
  config.layers = 4;
  const auto layers = [&](std::int64_t first, std::int64_t end, std::int64_t every) {
    DeviceContext context(kernels_named("reference"), 1);
    ParameterStore store(context, DType::f32);
    ModelSlice slice = ModelSlice::whole(config);
    slice.first = first;
    slice.end = end;
    slice.recompute = {Recompute::Kind::full, every};
    return build_parts(config, slice, store).layers.size();
  };
  EXPECT_EQ(layers(0, 8, 1), 4U);
  EXPECT_EQ(layers(0, 8, 2), 2U + 2 * 2U);
  EXPECT_EQ(layers(0, 8, 3), 2U + 2 * 2U);  // blocks 0 and 3
  EXPECT_EQ(layers(1, 4, 1), 2U) << "the second half of block 0, and block 1";
  EXPECT_EQ(layers(1, 3, 2), 2U) << "block 1 is kept: its attention is a layer of its own";
}

TEST(ModelParts, RefusesSlicesWithoutLayers) {
  const ModelConfig config = tiny_gpt2();
  for (const auto& [first, end] : {std::pair{2, 2}, std::pair{-1, 2}, std::pair{0, 5}}) {
    ModelSlice slice = ModelSlice::whole(config);
    slice.first = first;
    slice.end = end;
    DeviceContext context(kernels_named("reference"), 1);
    ParameterStore store(context, DType::f32);
    EXPECT_THROW((void)build_parts(config, slice, store), InternalError) << first << " " << end;
  }
}

}  // namespace
}  // namespace trireme
