// Exports adapters, and models merged with them, and compares with what PEFT saved and computed
// (make_peft_golden.py).
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/streamed_shard.h"
#include "mpi/self_communicator.h"
#include "src/interchange/export_hf.h"
#include "src/interchange/export_peft.h"
#include "src/interchange/hf_files.h"
#include "src/interchange/hf_model.h"
#include "src/interchange/import_model.h"
#include "src/interchange/sparsify.h"
#include "src/nn/key_value_cache.h"
#include "src/train/load_model.h"
#include "src/train/saving/base_weights.h"
#include "src/train/text/text_origin.h"
#include "tests/interchange/small_models.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr std::string_view kPrefix = "base_model.model.";

fs::path golden_adapters(const std::string& name) {
  return golden_model(name).parent_path().parent_path() / "golden_peft" / name;
}

nlohmann::json json_in(const fs::path& file) { return parse_json(read_file(file)); }

// A golden model, imported, and a checkpoint with PEFT's adapters for it.
class PeftTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const fs::path source = folder_.path() / "source";
    copy_golden(GetParam(), source);
    edit_config(source, {{"bos_token_id", 3}, {"eos_token_id", {2, 1}}});
    import_model({.source = source, .out = base_}, self_, keys_);
    fs::create_directory(adapters_);
    const nlohmann::json peft = json_in(golden_adapters(GetParam()) / "adapter_config.json");
    std::vector<StreamedTensor> tensors;
    for (const auto& [name, tensor] : file_.tensors()) {
      const bool swapped = is_swapped(name);
      tensors.push_back({name.substr(kPrefix.size()),
                         {tensor.shape[swapped ? 1 : 0], tensor.shape[swapped ? 0 : 1]}});
    }
    const MakeElements make = [&](const std::string& name, std::int64_t first, std::int64_t count,
                                  float* to) {
      const std::vector<float> all = elements(name);
      std::copy_n(all.begin() + first, count, to);
    };
    std::vector<ShardTable> tables = {
        write_streamed_shard(adapters_, 0, tensors, make, nullptr, {})};
    Manifest manifest;
    manifest.software = "test";
    nlohmann::json config = *step_in(base_).manifest->meta.config;
    std::vector<std::string> products = peft.at("target_modules");
    config["lora.products"] = products;
    config["lora.rank"] = peft.at("r");
    config["lora.alpha"] = peft.at("lora_alpha");
    manifest.meta.config = JsonValue(config);
    put_base(step_in(base_), *manifest.meta.extra);
    merge_tables(std::move(tables), manifest);
    write_file_durably(adapters_ / "manifest.json", to_text(manifest));
  }

  // Our B of GPT-2 is stored as the transpose of PEFT's.
  bool is_swapped(const std::string& name) const {
    return GetParam() == "gpt2" && name.ends_with("lora_B.weight");
  }
  std::vector<float> elements(const std::string& name) const {
    const std::string stored = std::string(kPrefix) + name;
    const HfTensor& tensor = file_.tensors().at(stored);
    std::vector<float> x(static_cast<std::size_t>(tensor.elements()));
    file_.read(stored, 0, tensor.elements(), x.data());
    if (!is_swapped(name)) {
      return x;
    }
    const auto rows = static_cast<std::size_t>(tensor.shape[0]);
    const auto columns = static_cast<std::size_t>(tensor.shape[1]);
    std::vector<float> swapped(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      swapped[i % columns * rows + i / columns] = x[i];
    }
    return swapped;
  }
  std::vector<double> expected(std::vector<std::int32_t>& ids) const {
    const nlohmann::json results = json_in(golden_adapters(GetParam()) / "expected.json");
    ids = results.at("ids").get<std::vector<std::int32_t>>();
    std::vector<double> logits;
    for (const auto& row : results.at("logits")) {
      logits.insert(logits.end(), row.begin(), row.end());
    }
    return logits;
  }

  SelfCommunicator self_;
  StepKeys keys_{self_, {}};
  TempFolder folder_;
  fs::path base_ = folder_.path() / "base";
  fs::path adapters_ = folder_.path() / "adapters";
  fs::path out_ = folder_.path() / "out";
  HfFiles file_{golden_adapters(GetParam()) / "adapter_model.safetensors"};
};

TEST_P(PeftTest, LogitsAreThoseOfPeft) {
  std::vector<std::int32_t> ids;
  const std::vector<double> logits = expected(ids);
  DeviceContext context(Device::cpu(), 1);
  const LoadedModel loaded = load_model(adapters_, context, DType::f32);
  trireme::Run run{.context = context, .parameters = *loaded.parameters, .dropout = {}};
  KeyValueCache cache(context, loaded.config, std::ssize(ids), DType::f32);
  std::size_t at = 0;
  for (const std::int32_t& id : ids) {
    for (const float logit :
         context.read<float>(loaded.model->decode({&id, 1, DType::i32}, cache, run).view())) {
      EXPECT_NEAR(logit, logits.at(at++), 1e-5);
    }
  }
}

TEST_P(PeftTest, ExportHasTheBitsThatPeftSaved) {
  const ExportResult result = export_to_peft({.checkpoint = adapters_, .out = out_}, self_, keys_);
  EXPECT_LT(result.difference.relative, 1e-5);
  const HfFiles written(out_ / "adapter_model.safetensors");
  ASSERT_EQ(written.tensors().size(), file_.tensors().size());
  for (const auto& [name, tensor] : file_.tensors()) {
    ASSERT_NE(written.find(name), nullptr) << name;
    EXPECT_EQ(written.find(name)->shape, tensor.shape) << name;
    std::vector<float> ours(static_cast<std::size_t>(tensor.elements()));
    std::vector<float> theirs(ours.size());
    written.read(name, 0, tensor.elements(), ours.data());
    file_.read(name, 0, tensor.elements(), theirs.data());
    EXPECT_EQ(ours, theirs) << name;
  }
  const nlohmann::json ours = json_in(out_ / "adapter_config.json");
  const nlohmann::json theirs = json_in(golden_adapters(GetParam()) / "adapter_config.json");
  for (const auto& [field, value] : ours.items()) {
    if (field == "target_modules") {
      EXPECT_THAT(
          value.get<std::vector<std::string>>(),
          testing::UnorderedElementsAreArray(theirs.at(field).get<std::vector<std::string>>()));
    } else if (field != "base_model_name_or_path") {
      EXPECT_EQ(value, theirs.at(field)) << field;
    }
  }
}

TEST_P(PeftTest, MergedExportHasTheLogitsOfPeft) {
  const ExportResult result =
      export_to_hf({.checkpoint = adapters_, .out = out_, .dtype = DType::f32}, self_, keys_);
  EXPECT_LT(result.difference.relative, 1e-5);
  const HfModel merged(out_);
  std::vector<std::int32_t> ids;
  const std::vector<double> logits = expected(ids);
  const ReadWeight read = [&](const std::string& tensor) { return merged.read(tensor); };
  const std::vector<double> own = plain_logits(merged.config().model, read, ids, 1);
  ASSERT_EQ(own.size(), logits.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_NEAR(own[i], logits[i], 1e-5);
  }
}

// Pruning joins adapters with their base, whose special tokens and type the new checkpoint keeps.
TEST_P(PeftTest, MergedWeightsThatWerePrunedAreExportedLikeOthers) {
  const fs::path pruned = folder_.path() / "pruned";
  const fs::path again = folder_.path() / "again";
  sparsify({.checkpoint = adapters_, .out = pruned, .sparsity = 0.1}, self_, keys_);
  export_to_hf({.checkpoint = adapters_, .out = out_}, self_, keys_);
  export_to_hf({.checkpoint = pruned, .out = again}, self_, keys_);
  const nlohmann::json config = json_in(again / "config.json");
  EXPECT_EQ(config, json_in(out_ / "config.json"));
  EXPECT_EQ(config.at("eos_token_id"), nlohmann::json({2, 1}));
  const StepFolder step = step_in(pruned);
  EXPECT_THAT(text_origin_of(step, nullptr, config.at("vocab_size")).ends,
              testing::ElementsAre(2, 1));
  const nlohmann::json& first = step.manifest->meta.extra->at("first_weights");
  EXPECT_EQ(first.at("base"), base_.string());
  EXPECT_EQ(first.at("base_sha256"), step_in(base_).manifest_sha256);
}

TEST_P(PeftTest, RefusesWeightsWithoutAdapters) {
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { export_to_peft({.checkpoint = base_, .out = out_}, self_, keys_); }),
              HasSubstr("no adapters"));
  EXPECT_FALSE(fs::exists(out_));
}

// A manifest that names another base, or adapters that its tensors are not.
TEST_P(PeftTest, RefusesForgedManifests) {
  const auto forge = [&](const std::function<void(Manifest&)>& change) {
    Manifest manifest =
        parse_manifest(read_file(adapters_ / "manifest.json"), "the adapters' manifest");
    change(manifest);
    const fs::path forged = folder_.path() / "forged";
    fs::remove_all(forged);
    fs::copy(adapters_, forged);
    write_file_durably(forged / "manifest.json", to_text(manifest));
    return message_of<DataError>(
        [&] { export_to_hf({.checkpoint = forged, .out = out_}, self_, keys_); });
  };
  EXPECT_THAT(forge([](Manifest& m) { (*m.meta.extra)["lora"]["base_sha256"] = "0"; }),
              HasSubstr("another checkpoint is there now"));
  EXPECT_THAT(forge([](Manifest& m) { m.meta.extra->erase("lora"); }), HasSubstr("lora"));
  EXPECT_THAT(forge([](Manifest& m) { (*m.meta.config)["lora.rank"] = 2; }),
              HasSubstr("do not match its model"));
  EXPECT_THAT(forge([](Manifest& m) { (*m.meta.config)["lora.products"] = {"x"}; }),
              HasSubstr("'x'"));
  EXPECT_THAT(forge([](Manifest& m) { (*m.meta.config)["lora.products"] = "q_proj"; }),
              HasSubstr("lora.products"));
  EXPECT_FALSE(fs::exists(out_));
}

INSTANTIATE_TEST_SUITE_P(Models, PeftTest, testing::Values("gpt2", "llama3"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace trireme
