#include "src/interchange/sparsify.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/store.h"
#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/interchange/checkpoint_weights.h"
#include "src/interchange/import_model.h"
#include "tests/interchange/small_models.h"
#include "tests/support/encrypted_files.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

std::map<std::string, std::vector<float>> weights_in(const fs::path& folder) {
  CheckpointWeights weights(step_in(folder), Weights::latest);
  std::map<std::string, std::vector<float>> all;
  for (const ModelTensor& tensor : weights.tensors()) {
    all[tensor.name] = weights.read(tensor.name);
  }
  return all;
}

std::int64_t zeros_in(const std::vector<float>& x) { return std::count(x.begin(), x.end(), 0.0F); }

class Sparsify : public testing::Test {
 protected:
  // Returns the folder of a golden model's checkpoint.
  fs::path imported(const std::string& name) {
    const fs::path out = folder_.path() / name;
    StepKeys keys(self_, {});
    import_model({.source = golden_model(name), .out = out, .compare = false}, self_, keys);
    return out;
  }
  SparsifyResult pruned(SparsifyOptions options, KeyOptions keys = {}) {
    StepKeys opened(self_, std::move(keys));
    options.out = out();
    return sparsify(options, self_, opened);
  }
  fs::path out() const { return folder_.path() / "out"; }

  TempFolder folder_;
  SelfCommunicator self_;
};

bool is_product(const std::string& name) {
  return name.ends_with("_proj.weight") || name.ends_with(".c_attn.weight") ||
         name.ends_with(".c_fc.weight");
}

TEST_F(Sparsify, PrunesEachMatrixOfTheLayersAndNothingElse) {
  const fs::path source = imported("llama2");
  const SparsifyResult result = pruned({.checkpoint = source, .sparsity = 0.3});
  const auto before = weights_in(source);
  const auto after = weights_in(out());
  std::int64_t zeros = 0;
  for (const auto& [name, x] : before) {
    const std::vector<float>& y = after.at(name);
    zeros += zeros_in(y);
    if (!is_product(name)) {
      EXPECT_EQ(y, x) << name;
      continue;
    }
    EXPECT_EQ(zeros_in(y), std::llround(0.3 * static_cast<double>(x.size()))) << name;
    float largest_pruned = 0;
    float smallest_kept = 1e9F;
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_TRUE(y[i] == 0 || y[i] == x[i]) << name;
      (y[i] == 0 ? largest_pruned : smallest_kept) = y[i] == 0
                                                         ? std::max(largest_pruned, std::abs(x[i]))
                                                         : std::min(smallest_kept, std::abs(x[i]));
    }
    EXPECT_LE(largest_pruned, smallest_kept) << name;
  }
  EXPECT_EQ(result.zeros, zeros);
  ASSERT_EQ(result.products.size(), 7U);
  EXPECT_EQ(result.products[0].name, "q_proj");
  EXPECT_EQ(result.products[0].matrices, 2);
}

TEST_F(Sparsify, TheOutputMatrixIsPrunedOnRequest) {
  const fs::path source = imported("gpt2_untied");
  const SparsifyResult result =
      pruned({.checkpoint = source, .sparsity = 0.5, .products = {"c_fc", "lm_head"}});
  const auto before = weights_in(source);
  for (const auto& [name, x] : weights_in(out())) {
    const bool chosen = name.ends_with(".c_fc.weight") || name == "lm_head.weight";
    EXPECT_EQ(x == before.at(name), !chosen) << name;
  }
  ASSERT_EQ(result.products.size(), 2U);
  EXPECT_EQ(result.products[1].name, "lm_head");
  EXPECT_EQ(result.products[1].zeros,
            std::llround(0.5 * static_cast<double>(before.at("lm_head.weight").size())));
}

TEST_F(Sparsify, ThePatternRunsAlongTheInputs) {
  for (const std::string name : {"gpt2", "llama3"}) {
    const fs::path source = imported(name);
    fs::remove_all(out());
    const bool gpt2 = name == "gpt2";
    if (!gpt2) {
      EXPECT_THAT(message_of<ConfigError>([&] { pruned({.checkpoint = source}); }),
                  HasSubstr("down_proj.weight has 22 inputs"));
      EXPECT_FALSE(fs::exists(out()));
    }
    const std::vector<std::string> products =
        gpt2 ? std::vector<std::string>{"all"}
             : std::vector<std::string>{"q_proj", "k_proj",    "v_proj",
                                        "o_proj", "gate_proj", "up_proj"};
    const SparsifyResult result = pruned({.checkpoint = source, .products = products});
    const auto after = weights_in(out());
    const CheckpointWeights weights(step_in(out()), Weights::latest);
    for (const ModelTensor& tensor : weights.tensors()) {
      if (!is_product(tensor.name) || tensor.name.ends_with(".down_proj.weight")) {
        continue;
      }
      const std::vector<float>& x = after.at(tensor.name);
      const std::int64_t columns = tensor.shape[1];
      const std::int64_t stride = gpt2 ? columns : 1;
      for (std::int64_t at = 0; at < std::ssize(x); ++at) {
        if ((gpt2 ? at / columns : at % columns) % 4 == 0) {
          int kept = 0;
          for (int i = 0; i < 4; ++i) {
            kept += x[static_cast<std::size_t>(at + i * stride)] != 0 ? 1 : 0;
          }
          ASSERT_EQ(kept, 2) << tensor.name << " " << at;
        }
      }
    }
    for (const SparsifiedProduct& product : result.products) {
      EXPECT_EQ(2 * product.zeros, product.elements) << product.name;
    }
  }
}

TEST_F(Sparsify, RecordsWhereTheWeightsComeFrom) {
  const fs::path source = imported("gpt2");
  pruned({.checkpoint = source, .sparsity = 0.5});
  const StepFolder step = step_in(out());
  const Manifest& manifest = *step.manifest;
  const nlohmann::json& record = manifest.meta.extra->at("pruned");
  EXPECT_EQ(record.at("parent"), source.string());
  EXPECT_EQ(record.at("parent_sha256"), step_in(source).manifest_sha256);
  EXPECT_EQ(record.at("sparsity"), 0.5);
  EXPECT_FALSE(record.contains("pattern"));
  EXPECT_EQ(2 * record.at("products").at("c_attn").at("zeros").get<std::int64_t>(),
            record.at("products").at("c_attn").at("elements").get<std::int64_t>());
  EXPECT_EQ(manifest.meta.extra->at("imported"),
            step_in(source).manifest->meta.extra->at("imported"));
  EXPECT_EQ(*manifest.meta.config, *step_in(source).manifest->meta.config);
  EXPECT_EQ(manifest.meta.step, 0);
}

TEST_F(Sparsify, RanksWriteTheSameCheckpoint) {
  const fs::path source = imported("gpt2");
  pruned({.checkpoint = source});
  const fs::path shared = folder_.path() / "shared";
  ThreadWorld world(3);
  world.run([&](Communicator& comm) {
    StepKeys keys(comm, {});
    const SparsifyResult result = sparsify({.checkpoint = source, .out = shared}, comm, keys);
    EXPECT_EQ(2 * result.products[3].zeros, result.products[3].elements);
  });
  EXPECT_EQ(weights_in(shared), weights_in(out()));
}

TEST_F(Sparsify, RefusesWhatTheModelDoesNotHaveAndLeavesNothing) {
  const fs::path source = imported("gpt2");
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { pruned({.checkpoint = source, .sparsity = 0.5, .products = {"q_proj"}}); }),
              AllOf(HasSubstr("'q_proj'"), HasSubstr("c_attn"), HasSubstr("lm_head")));
  EXPECT_THAT(message_of<ConfigError>([&] {
                pruned({.checkpoint = source, .sparsity = 0.5, .products = {"all", "lm_head"}});
              }),
              HasSubstr("is its embedding"));
  EXPECT_THAT(message_of<NotFound>([&] { pruned({.checkpoint = folder_.path() / "x"}); }),
              HasSubstr("x"));
  EXPECT_THAT(message_of<PolicyError>([&] {
                pruned({.checkpoint = source, .admit = [](const std::optional<Label>&) {
                          throw PolicyError("not here");
                        }});
              }),
              HasSubstr("not here"));
  EXPECT_FALSE(fs::exists(out()));
  pruned({.checkpoint = source});
  EXPECT_THAT(message_of<PolicyError>([&] { pruned({.checkpoint = source}); }),
              HasSubstr("exists"));
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    left.push_back(entry.path().filename());
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("gpt2", "out"));
}

TEST_F(Sparsify, AnEncryptedCheckpointStaysEncrypted) {
  const std::string uri = new_key(folder_.path(), "site");
  const fs::path source = folder_.path() / "sealed";
  StepKeys keys(self_, KeyOptions{.uris = {uri}});
  import_model({.source = golden_model("gpt2"), .out = source, .compare = false}, self_, keys);
  EXPECT_THAT(message_of<PolicyError>([&] { pruned({.checkpoint = source}); }), HasSubstr("key"));
  EXPECT_FALSE(fs::exists(out()));
  pruned({.checkpoint = source}, KeyOptions{.uris = {uri}});
  EXPECT_FALSE(step_in(out()).manifest->data_key.empty());
  EXPECT_TRUE(fs::exists(out() / "keys.json"));
}

TEST_F(Sparsify, ADamagedSourceIsRefused) {
  const fs::path source = imported("gpt2");
  const fs::path shard = source / "shard-00000.safetensors";
  std::string bytes = read_file(shard);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  fs::remove(shard);
  write_file_durably(shard, bytes);
  EXPECT_THAT(message_of<DataError>([&] { pruned({.checkpoint = source}); }),
              HasSubstr("shard-00000"));
  EXPECT_FALSE(fs::exists(out()));
}

}  // namespace
}  // namespace trireme
