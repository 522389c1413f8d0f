#include "src/train/load_model.h"

#include <cstring>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/writer.h"
#include "io/data/tokenizer.h"
#include "mpi/thread/thread_world.h"
#include "src/base/file.h"
#include "src/nn/key_value_cache.h"
#include "src/nn/master_weights.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/fingerprint.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

RunConfig small_run() {
  RunConfig config;
  config.model.layers = 1;
  config.model.hidden = 8;
  config.model.heads = 2;
  config.model.vocab = 16;
  config.model.context = 4;
  config.model.complete();
  config.data.sequence = 4;
  return config;
}

// Saves one step of a run that has just begun, and returns the step's manifest file. weight: if not
// null, the value of the first weight of the first tensor.
std::filesystem::path save(const TempFolder& folder, const float* weight = nullptr,
                           std::int64_t step = 0) {
  DeviceContext context(Device::cpu(), 1);
  const RunConfig config = small_run();
  ParameterStore store(context, DType::f32);
  const Model model(config.model, store);
  store.allocate();
  MasterWeights masters(store);
  masters.initialize(1);
  const std::vector<TensorBlock> blocks = parameters_to_load(masters, Weights::latest);
  if (weight != nullptr) {
    std::memcpy(blocks.front().data.data, weight, sizeof *weight);
  }
  ThreadWorld(1).run([&](Communicator& comm) {
    DiskTarget target(comm, {.folder = folder.path()});
    CheckpointWriter writer(comm, target);
    CheckpointMeta meta;
    meta.step = step;
    meta.config = JsonValue(config_fingerprint(config, "digest", "bytes"));
    writer.save(meta, blocks);
    EXPECT_TRUE(writer.finish()->durable);
  });
  return folder.path() / step_folder_name(step) / kManifestName;
}

void edit(const std::filesystem::path& file, const std::function<void(Manifest&)>& change) {
  Manifest manifest = parse_manifest(read_file(file), file.string());
  change(manifest);
  write_file_durably(file, to_text(manifest));
}

TEST(LoadModel, LoadsWhatWasSaved) {
  const TempFolder folder;
  save(folder);
  DeviceContext context(Device::cpu(), 1);
  const LoadedModel loaded = load_model(folder.path(), context, DType::f32);
  EXPECT_EQ(loaded.config, small_run().model);
  EXPECT_EQ(loaded.sequence, 4);
}

// The damage is noticed only when the shard is read.
TEST(LoadModel, SkipsAStepWithDamagedTensors) {
  const TempFolder folder;
  const std::filesystem::path older = save(folder).parent_path();
  const std::filesystem::path newer = folder.path() / step_folder_name(9);
  std::filesystem::copy(older, newer, std::filesystem::copy_options::recursive);
  edit(newer / kManifestName, [](Manifest& manifest) { manifest.meta.step = 9; });
  const std::filesystem::path shard = newer / "shard-00000.safetensors";
  std::string bytes = read_file(shard);
  bytes[bytes.size() - 5] ^= 1;
  write_file_durably(shard, bytes);
  DeviceContext context(Device::cpu(), 1);
  const LoadedModel loaded = load_model(folder.path(), context, DType::f32);
  EXPECT_EQ(loaded.step, 0);
  EXPECT_THAT(loaded.skipped, testing::ElementsAre(HasSubstr(shard.string())));
  EXPECT_THAT(message_of<DataError>([&] { load_model(newer, context, DType::f32); }),
              testing::AllOf(StartsWith(shard.string()), HasSubstr("ckpt verify --all")));
  std::filesystem::remove_all(older);
  EXPECT_THAT(message_of<DataError>([&] { load_model(folder.path(), context, DType::f32); }),
              StartsWith(shard.string()));
}

// All digests match, as in a checkpoint of a run that had diverged.
TEST(LoadModel, SkipsAStepWhoseWeightsAreNotFinite) {
  for (const float weight :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    const TempFolder folder;
    save(folder);
    const std::filesystem::path newer = save(folder, &weight, 9).parent_path();
    DeviceContext context(Device::cpu(), 1);
    const LoadedModel loaded = load_model(folder.path(), context, DType::f32);
    EXPECT_EQ(loaded.step, 0);
    EXPECT_THAT(loaded.skipped, testing::ElementsAre(HasSubstr("wte.weight contains ")));
    EXPECT_THAT(message_of<DataError>([&] { load_model(newer, context, DType::f32); }),
                testing::AllOf(StartsWith(newer.string()), HasSubstr("wte.weight contains ")));
  }
}

// The manifest is wrong, but its seal is valid. No case allocates memory for the weights.
TEST(LoadModel, RefusesAModelThatIsNone) {
  struct Case {
    const char* key;
    nlohmann::json value;
    const char* said;
  };
  const std::vector<Case> cases = {{"model.context", 32.5, "'model.context' is 32.5"},
                                   {"model.context", -4, "'model.context'"},
                                   {"model.layers", "1", "'model.layers'"},
                                   {"model.hidden", nullptr, "'model.hidden'"},
                                   {"model.family", "bert", "bert"},
                                   {"model.heads", 3, "heads"},
                                   {"model.tie_embeddings", 1, "'model.tie_embeddings'"},
                                   {"model.dropout", "x", "'model.dropout'"},
                                   {"model.layers", 65536, "parameters"},
                                   {"model.vocab", 2147483647, "parameters"},
                                   {"model.vocab", 15, "wte"},
                                   {"train.precision", "int4", "'train.precision' is 'int4'"},
                                   {"train.precision", 5, "'train.precision'"},
                                   {"data.sequence", 5, "'data.sequence'"},
                                   {"data.sequence", "4", "'data.sequence'"}};
  for (const Case& bad : cases) {
    const TempFolder folder;
    const std::filesystem::path file = save(folder);
    edit(file, [&](Manifest& manifest) { (*manifest.meta.config)[bad.key] = bad.value; });
    DeviceContext context(Device::cpu(), 1);
    const std::string what =
        message_of<DataError>([&] { load_model(folder.path(), context, DType::f32); });
    EXPECT_THAT(what, StartsWith(file.string() + ": ")) << bad.key << bad.value;
    EXPECT_THAT(what, HasSubstr(bad.said)) << bad.key << bad.value;
    EXPECT_EQ(context.state().reserved_bytes(), 0) << bad.key << bad.value;
  }
}

// The model has 16 token ids.
TEST(LoadModel, RefusesATokenizerThatIsNotTheModels) {
  const std::string bytes = make_tokenizer("bytes")->digest();
  for (const auto& [digest, vocab] : std::vector<std::pair<nlohmann::json, nlohmann::json>>{
           {"x", 0}, {"x", 17}, {"x", std::int64_t{1} << 60}, {"x", "16"}, {5, 16}, {bytes, 5}}) {
    const TempFolder folder;
    const std::filesystem::path file = save(folder);
    edit(file, [&](Manifest& manifest) {
      *manifest.meta.extra = {
          {"tokenizer", "bytes"}, {"tokenizer_digest", digest}, {"tokenizer_vocab", vocab}};
    });
    DeviceContext context(Device::cpu(), 1);
    EXPECT_THAT(message_of<DataError>([&] { load_model(folder.path(), context, DType::f32); }),
                testing::AllOf(StartsWith(file.string() + ": "), HasSubstr("'tokenizer_")))
        << digest << vocab;
  }
}

TEST(LoadModel, RefusesAnAverageThatIsNotStored) {
  const TempFolder folder;
  const std::filesystem::path file = save(folder);
  const auto refuse = [&](const nlohmann::json& ema) {
    edit(file, [&](Manifest& manifest) { (*manifest.meta.config)["optimizer.ema"] = ema; });
    DeviceContext context(Device::cpu(), 1);
    load_model(folder.path(), context, DType::f32, Weights::average);
  };
  EXPECT_THROW(refuse(0), ConfigError);
  EXPECT_THAT(message_of<DataError>([&] { refuse("x"); }),
              testing::AllOf(StartsWith(file.string()), HasSubstr("'optimizer.ema'")));
  EXPECT_THAT(message_of<DataError>([&] { refuse(0.9); }),
              HasSubstr("tensors do not match its model"));
}

TEST(LoadModel, NamesTheFileThatLacksAField) {
  const TempFolder folder;
  const std::filesystem::path file = save(folder);
  edit(file, [](Manifest& manifest) { (*manifest.meta.config).erase("model.ffn"); });
  DeviceContext context(Device::cpu(), 1);
  EXPECT_THAT(message_of<DataError>([&] { load_model(folder.path(), context, DType::f32); }),
              testing::AllOf(StartsWith(file.string()), HasSubstr("no field 'model.ffn'")));
}

TEST(LoadModel, QuotesTheFileInOneLine) {
  const TempFolder folder;
  const std::filesystem::path file = save(folder);
  edit(file,
       [](Manifest& manifest) { (*manifest.meta.config)["train.precision"] = "x\nBAD \x1b[31m"; });
  DeviceContext context(Device::cpu(), 1);
  EXPECT_THAT(message_of<DataError>([&] { load_model(folder.path(), context, DType::f32); }),
              testing::AllOf(StartsWith(file.string() + ": "), HasSubstr("'x\\nBAD \\x1b[31m'")));
}

// A context in f32 and one in 8 bits give nearly the same logits.
TEST(LoadModel, PacksTheWeights) {
  const TempFolder folder;
  save(folder);
  DeviceContext context(Device::cpu(), 1);
  const LoadedModel plain = load_model(folder.path(), context, DType::f32);
  EXPECT_EQ(plain.packed, nullptr);
  std::vector<float> logits[2];
  for (const int bits : {0, 8}) {
    const LoadedModel loaded =
        load_model(folder.path(), context, DType::f32, Weights::latest, {}, bits);
    trireme::Run run{.context = context, .parameters = *loaded.parameters, .dropout = {}};
    run.packed = loaded.packed.get();
    KeyValueCache cache(context, loaded.config, 4, DType::f32);
    const std::vector<std::int32_t> ids = {3, 1, 2};
    logits[bits / 8] =
        context.read<float>(loaded.model->decode({ids.data(), 3, DType::i32}, cache, run).view());
  }
  EXPECT_NE(logits[0], logits[1]);
  for (std::size_t i = 0; i < logits[0].size(); ++i) {
    EXPECT_NEAR(logits[0][i], logits[1][i], 2e-3);
  }
}

}  // namespace
}  // namespace trireme
