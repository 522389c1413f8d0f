// Imports and exports the golden models, whose logits transformers computed.
#include <atomic>
#include <cmath>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "mpi/self_communicator.h"
#include "mpi/thread/thread_world.h"
#include "src/interchange/export_hf.h"
#include "src/interchange/hf_files.h"
#include "src/interchange/hf_model.h"
#include "src/interchange/import_model.h"
#include "src/nn/key_value_cache.h"
#include "src/nn/sampling.h"
#include "src/train/load_model.h"
#include "src/train/text/text_origin.h"
#include "tests/interchange/small_models.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

ImportResult import_golden(const std::string& name, const fs::path& out,
                           std::int64_t shard_bytes = 1 << 30) {
  SelfCommunicator self;
  StepKeys keys(self, {});
  return import_model({.source = golden_model(name), .out = out, .shard_bytes = shard_bytes}, self,
                      keys);
}

ExportResult export_checkpoint(const ExportOptions& options) {
  SelfCommunicator self;
  StepKeys keys(self, {});
  return export_to_hf(options, self, keys);
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

// Decodes one token at a time with an imported model.
class Decoder {
 public:
  explicit Decoder(const fs::path& checkpoint)
      : context_(Device::cpu(), 1),
        loaded_(load_model(checkpoint, context_, DType::f32)),
        run_{.context = context_, .parameters = *loaded_.parameters, .dropout = {}},
        cache_(context_, loaded_.config, loaded_.config.context, DType::f32) {}
  std::vector<float> next(std::int32_t id) {
    return context_.read<float>(loaded_.model->decode({&id, 1, DType::i32}, cache_, run_).view());
  }

 private:
  DeviceContext context_;
  LoadedModel loaded_;
  Run run_;
  KeyValueCache cache_;
};

// Writes the same bytes again and again, as a download that is not finished yet may.
TEST(Import, RefusesASourceThatChangesWhileItIsRead) {
  const TempFolder folder;
  const fs::path source = folder.path() / "source";
  fs::copy(golden_model("gpt2"), source);
  SelfCommunicator self;
  StepKeys keys(self, {});
  const fs::path out = folder.path() / "out";
  const auto import = [&] { (void)import_model({.source = source, .out = out}, self, keys); };
  std::atomic<int> written = 0;
  {
    const std::jthread writer([&](const std::stop_token& stop) {
      const std::string text = read_file(source / "config.json");
      while (!stop.stop_requested()) {
        write_file_durably(source / "config.json", text);
        ++written;
      }
    });
    while (written == 0) {
      std::this_thread::yield();
    }
    EXPECT_THAT(message_of<DataError>(import), HasSubstr("changed while it was read"));
  }
  EXPECT_FALSE(fs::exists(out));
  import();
  EXPECT_TRUE(fs::exists(out));
}

// Whoever edits the configuration of a manifest can compute its seal, too.
TEST(Export, RefusesWeightsThatTheConfigurationDoesNotUse) {
  struct Case {
    const char* model;
    const char* key;
    nlohmann::json value;
    const char* said;
  };
  const std::vector<Case> cases = {
      {"gpt2", "model.layers", 1, "without 12 of the stored tensors: transformer.h.1.attn."},
      {"gpt2_untied", "model.tie_embeddings", true,
       "without 1 of the stored tensors: lm_head.weight;"},
      {"gpt2", "train.precision", "fp64", "'train.precision' is 'fp64'"}};
  for (const Case& bad : cases) {
    const TempFolder folder;
    const fs::path made = folder.path() / "made";
    import_golden(bad.model, made);
    const fs::path file = made / kManifestName;
    Manifest manifest = parse_manifest(read_file(file), file.string());
    (*manifest.meta.config)[bad.key] = bad.value;
    write_file_durably(file, to_text(manifest));
    const auto refused = testing::AllOf(HasSubstr(file.string()), HasSubstr(bad.said));
    EXPECT_THAT(message_of<DataError>(
                    [&] { export_checkpoint({.checkpoint = made, .out = folder.path() / "out"}); }),
                refused);
    DeviceContext context(Device::cpu(), 1);
    EXPECT_THAT(message_of<DataError>([&] { load_model(made, context, DType::f32); }), refused);
  }
}

TEST(PlainModel, HasTheLogitsOfTransformers) {
  for (const std::string& name : kGoldenModels) {
    const HfModel model(golden_model(name));
    const ExpectedResults expected = expected_results(name);
    const ReadWeight read = [&](const std::string& tensor) { return model.read(tensor); };
    const auto logits = plain_logits(model.config().model, read, expected.ids, 2);
    EXPECT_LT(largest_difference(logits, expected.logits), 1e-5) << name;
  }
}

TEST(Import, HasTheLogitsAndTheContinuationOfTransformers) {
  for (const std::string& name : kGoldenModels) {
    const TempFolder folder;
    const ImportResult result = import_golden(name, folder.path() / "imported");
    EXPECT_LT(result.difference.largest, 1e-5) << name;
    EXPECT_TRUE(result.difference.same_choice);
    Decoder decoder(folder.path() / "imported");
    const ExpectedResults expected = expected_results(name);
    std::vector<double> logits;
    std::vector<float> last;
    for (const std::int32_t id : expected.ids) {
      last = decoder.next(id);
      logits.insert(logits.end(), last.begin(), last.end());
    }
    EXPECT_LT(largest_difference(logits, expected.logits), 1e-5) << name;
    std::vector<std::int32_t> continuation;
    while (continuation.size() < expected.continuation.size()) {
      continuation.push_back(
          static_cast<std::int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
      last = decoder.next(continuation.back());
    }
    EXPECT_EQ(continuation, expected.continuation) << name;
  }
}

// The golden files were written by transformers. An export has the same elements of the same types.
TEST(Export, ReturnsTheBitsThatWereImported) {
  for (const std::string& name : kGoldenModels) {
    const TempFolder folder;
    import_golden(name, folder.path() / "imported", 5000);
    const ExportResult result = export_checkpoint({.checkpoint = folder.path() / "imported",
                                                   .out = folder.path() / "exported",
                                                   .file_bytes = 6000});
    const HfFiles before(golden_model(name));
    const HfFiles after(folder.path() / "exported");
    ASSERT_EQ(before.tensors().size(), after.tensors().size()) << name;
    for (const auto& [tensor, place] : before.tensors()) {
      const HfTensor& other = after.tensors().at(tensor);
      EXPECT_EQ(other.dtype, place.dtype) << tensor;
      EXPECT_EQ(other.shape, place.shape) << tensor;
      std::vector<float> a(static_cast<std::size_t>(place.elements()));
      std::vector<float> b(a.size());
      before.read(tensor, 0, place.elements(), a.data());
      after.read(tensor, 0, place.elements(), b.data());
      EXPECT_EQ(a, b) << tensor;
    }
    const HfModel exported(folder.path() / "exported");
    EXPECT_EQ(exported.config().model, HfModel(golden_model(name)).config().model);
    EXPECT_LT(result.difference.largest, 1e-5);
  }
}

TEST(Export, RoundsToOtherTypesAndSaysHowFarTheLogitsMove) {
  const TempFolder folder;
  import_golden("gpt2", folder.path() / "imported");
  const ExportResult result = export_checkpoint({.checkpoint = folder.path() / "imported",
                                                 .out = folder.path() / "exported",
                                                 .dtype = DType::bf16});
  EXPECT_GT(result.difference.largest, 1e-4);
  EXPECT_LT(result.difference.relative, 0.05);
  const HfModel exported(folder.path() / "exported");
  EXPECT_EQ(exported.dtype(), DType::bf16);
  const float before = HfModel(golden_model("gpt2")).read("transformer.wpe.weight")[5];
  EXPECT_EQ(exported.read("transformer.wpe.weight")[5], to_float(to_bf16(before)));
}

TEST(Export, CarriesTheTokenizer) {
  const TempFolder folder;
  const fs::path source = folder.path() / "source";
  copy_golden("llama3", source);
  write_file_durably(source / "tokenizer.json", "{\"version\": \"1.0\"}");
  SelfCommunicator self;
  StepKeys keys(self, {});
  import_model({.source = source, .out = folder.path() / "imported"}, self, keys);
  export_checkpoint({.checkpoint = folder.path() / "imported", .out = folder.path() / "exported"});
  EXPECT_EQ(read_file(folder.path() / "exported" / "tokenizer.json"), "{\"version\": \"1.0\"}");
}

// Returns the contents of a folder's files by name, without the one that has the time in it.
std::map<std::string, std::string> contents_of(const fs::path& folder) {
  std::map<std::string, std::string> contents;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != "manifest.json") {
      contents[entry.path().filename()] = read_file(entry.path());
    }
  }
  return contents;
}

TEST(Import, WritesTheSameFilesOnAnyNumberOfRanks) {
  const TempFolder folder;
  import_golden("llama2", folder.path() / "one", 5000);
  export_checkpoint({.checkpoint = folder.path() / "one",
                     .out = folder.path() / "exported-one",
                     .file_bytes = 6000});
  ThreadWorld(3).run([&](Communicator& world) {
    StepKeys keys(world, {});
    import_model(
        {.source = golden_model("llama2"), .out = folder.path() / "three", .shard_bytes = 5000},
        world, keys);
    // The files name the checkpoint, whose manifest has the time of the import.
    export_to_hf({.checkpoint = folder.path() / "one",
                  .out = folder.path() / "exported-three",
                  .file_bytes = 6000},
                 world, keys);
  });
  EXPECT_GT(contents_of(folder.path() / "one").size(), 3U);
  EXPECT_EQ(contents_of(folder.path() / "one"), contents_of(folder.path() / "three"));
  EXPECT_EQ(contents_of(folder.path() / "exported-one"),
            contents_of(folder.path() / "exported-three"));
}

TEST(Import, LeavesNothingBehindAfterAnError) {
  const TempFolder folder;
  const fs::path source = folder.path() / "source";
  copy_golden("gpt2_untied", source);
  std::string bytes = read_file(source / "model.safetensors");
  bytes[bytes.size() - 1] = '\x7F';  // NaN in fp16
  bytes[bytes.size() - 2] = '\x01';
  write_file_durably(source / "model.safetensors", bytes);
  SelfCommunicator self;
  StepKeys keys(self, {});
  EXPECT_THAT(message_of<DataError>([&] {
                import_model({.source = source, .out = folder.path() / "out" / "imported"}, self,
                             keys);
              }),
              HasSubstr("must be finite"));
  EXPECT_TRUE(fs::is_empty(folder.path() / "out"));
}

// Writes a safetensors file of one number, the tensor a.
template <class T>
void write_number(const fs::path& path, const char* type, T value) {
  const std::string head = fmt::format(
      R"({{"a":{{"dtype":"{}","shape":[1],"data_offsets":[0,{}]}}}})", type, sizeof value);
  const auto length = static_cast<std::uint64_t>(head.size());
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += head;
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  write_file_durably(path, bytes);
}

TEST(Import, SaysWhyANumberCannotBeAWeight) {
  const TempFolder folder;
  const fs::path file = folder.path() / "model.safetensors";
  write_number(file, "F64", 1e300);
  float read = 0;
  EXPECT_THAT(message_of<DataError>([&] { HfFiles(folder.path()).read("a", 0, 1, &read); }),
              HasSubstr("element 0 of tensor a is 1e+300, which fp32 cannot hold"));
  write_number(file, "I8", std::int8_t{1});
  EXPECT_THAT(message_of<DataError>([&] { HfFiles(folder.path()); }),
              testing::AllOf(HasSubstr("tensor a: the element type 'I8' is not supported"),
                             testing::Not(HasSubstr("was it downloaded"))));
}

TEST(Import, KeepsTheIdsWithWhichAGenerationEnds) {
  const TempFolder folder;
  const fs::path source = folder.path() / "source";
  copy_golden("llama2", source);
  SelfCommunicator self;
  StepKeys keys(self, {});
  const auto import = [&](const std::string& text, const fs::path& out) {
    write_file_durably(source / "generation_config.json", text);
    import_model({.source = source, .out = out}, self, keys);
  };
  import(R"({"eos_token_id": [2, 0]})", folder.path() / "out");
  const TextOrigin origin = text_origin_of(step_in(folder.path() / "out"), nullptr, 100);
  EXPECT_THAT(origin.ends, testing::ElementsAre(2, 0));
  EXPECT_THAT(all_ends(origin, 5), testing::ElementsAre(2, 0)) << "not at the tokenizer's";
  import("{}", folder.path() / "endless");
  EXPECT_THAT(all_ends(text_origin_of(step_in(folder.path() / "endless"), nullptr, 100), 5),
              testing::IsEmpty());
  EXPECT_THAT(all_ends({.folders = {}, .ends = {2}}, 5), testing::ElementsAre(2, 5))
      << "it was trained since";
  EXPECT_THAT(all_ends({.folders = {}, .ends = {2}}, -1), testing::ElementsAre(2));
  for (const char* wrong : {"{broken", "[]", R"({"eos_token_id": 99999})"}) {
    EXPECT_THAT(message_of<DataError>([&] { import(wrong, folder.path() / "wrong"); }),
                HasSubstr("generation_config.json: "))
        << wrong;
    EXPECT_FALSE(fs::exists(folder.path() / "wrong"));
  }
}

TEST(Import, ReplacesNothing) {
  const TempFolder folder;
  EXPECT_THAT(message_of<PolicyError>([&] { import_golden("gpt2", folder.path()); }),
              HasSubstr("exists"));
}

}  // namespace
}  // namespace trireme
