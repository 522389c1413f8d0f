#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
#include "src/base/error.h"
#include "src/interchange/elements.h"
#include "src/interchange/export_onnx.h"
#include "src/interchange/import_model.h"
#include "src/interchange/onnx/onnx_graph.h"
#include "src/interchange/onnx/onnx_interpreter.h"
#include "tests/interchange/small_models.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

ExportResult export_golden(const TempFolder& folder, const std::string& name, OnnxType type,
                           OnnxFolder kind = OnnxFolder::plain) {
  SelfCommunicator self;
  StepKeys keys(self, {});
  if (!fs::exists(folder.path() / name)) {
    import_model({.source = golden_model(name), .out = folder.path() / name}, self, keys);
  }
  fs::remove_all(folder.path() / "out");
  return export_to_onnx({.checkpoint = folder.path() / name, .out = folder.path() / "out"}, type,
                        kind, self, keys);
}

// Runs the graph of a folder on the ids.
std::vector<double> run(const fs::path& folder, const std::vector<std::int32_t>& ids) {
  const OnnxModel model = parse_onnx(read_file(folder / "model.onnx"));
  const File data = File::open_to_read(folder / "model.onnx.data");
  const ReadOnnxTensor read = [&](const OnnxTensor& tensor) {
    std::vector<float> elements(static_cast<std::size_t>(tensor.elements()));
    data.read_exactly_at(tensor.offset, elements.data(), tensor.elements() * 4);
    return elements;
  };
  return run_onnx(model, read, ids, 2);
}

TEST(Onnx, AGraphHasTheLogitsOfTransformers) {
  for (const std::string& name : kGoldenModels) {
    const TempFolder folder;
    EXPECT_LT(export_golden(folder, name, OnnxType::f32).difference.largest, 1e-5) << name;
    const ExpectedResults expected = expected_results(name);
    const std::vector<double> logits = run(folder.path() / "out", expected.ids);
    ASSERT_EQ(logits.size(), expected.logits.size()) << name;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      ASSERT_NEAR(logits[i], expected.logits[i], 1e-5) << name << " " << i;
    }
  }
}

TEST(Onnx, RoundedWeightsAreWidenedByTheGraph) {
  for (const std::string name : {"gpt2", "llama3"}) {
    const TempFolder folder;
    for (const OnnxType type : {OnnxType::f16, OnnxType::bf16}) {
      const ExportResult result = export_golden(folder, name, type);
      EXPECT_LT(result.difference.relative, 0.02) << name;
      EXPECT_GT(result.difference.largest, 0) << name;
      const OnnxModel model = parse_onnx(read_file(folder.path() / "out/model.onnx"));
      for (const OnnxTensor& tensor : model.tensors) {
        EXPECT_EQ(tensor.offset % 4096, 0);
        if (!tensor.file.empty()) {
          EXPECT_EQ(tensor.type, tensor.shape.size() == 2 ? type : OnnxType::f32) << tensor.name;
        }
      }
    }
  }
}

TEST(Onnx, TheFolderForTritonSaysWhatTheGraphTakes) {
  const TempFolder folder;
  export_golden(folder, "llama2", OnnxType::f32, OnnxFolder::triton);
  const std::string config = read_file(folder.path() / "out/config.pbtxt");
  EXPECT_THAT(config, HasSubstr("name: \"out\"\n"));
  const OnnxModel model = parse_onnx(read_file(folder.path() / "out/1/model.onnx"));
  const std::int64_t vocab = std::get<std::int64_t>(model.outputs.front().shape.back());
  EXPECT_THAT(config, HasSubstr(fmt::format("TYPE_FP32 dims: [ -1, -1, {} ]", vocab)));
  EXPECT_TRUE(fs::exists(folder.path() / "out/1/model.onnx.data"));
  SelfCommunicator self;
  StepKeys keys(self, {});
  EXPECT_THAT(message_of<ConfigError>([&] {
                export_to_onnx(
                    {.checkpoint = folder.path() / "llama2", .out = folder.path() / "two words"},
                    OnnxType::f32, OnnxFolder::triton, self, keys);
              }),
              HasSubstr("the folder's name"));
}

OnnxModel small_graph() {
  ModelConfig config;
  config.family = Family::llama;
  config.layers = 1;
  config.hidden = config.ffn = 8;
  config.heads = 2;
  config.vocab = 11;
  config.context = 4;
  config.complete();
  return onnx_graph(config, OnnxType::bf16, "model.onnx.data").model;
}

TEST(Onnx, AModelIsReadAsItWasWritten) {
  const OnnxModel model = small_graph();
  EXPECT_EQ(parse_onnx(encode_onnx(model)), model);
}

TEST(Onnx, DamageIsFound) {
  const std::string good = encode_onnx(small_graph());
  const auto refused = [](const std::string& text) {
    return message_of<DataError>([&] { (void)parse_onnx(text); });
  };
  EXPECT_THAT(refused(good.substr(0, good.size() / 2)), HasSubstr("bytes where"));
  EXPECT_THAT(refused("\x08\x07"), HasSubstr("IR version 7"));
  EXPECT_THAT(refused("\x08"), HasSubstr("ends early"));
  EXPECT_THAT(refused(std::string("\x08") + std::string(11, '\xff')), HasSubstr("64 bits"));
  EXPECT_THAT(refused(std::string("\0", 1)), HasSubstr("the number 0"));
  EXPECT_THAT(refused(std::string("\x7a\0", 2)), HasSubstr("unknown field 15"));
  EXPECT_THAT(refused("\x09"), HasSubstr("unknown kind"));
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return refused(text);
  };
  EXPECT_THAT(changed("location", "locatiom"), HasSubstr("the unknown entry 'locatiom'"));
  EXPECT_THAT(changed("offset\x12\x01\x30", "offset\x12\x01x"), HasSubstr("is not a number"));
}

// Each of these graphs would make the interpreter read what is not there.
TEST(Onnx, ImpossibleGraphsAreRefused) {
  const auto refused = [](const std::function<void(OnnxModel&)>& change) {
    OnnxModel model = small_graph();
    change(model);
    const ReadOnnxTensor read = [](const OnnxTensor& tensor) {
      return std::vector<float>(static_cast<std::size_t>(tensor.elements()), 0.5F);
    };
    return message_of<DataError>([&] {
      (void)run_onnx(model, read, std::vector<std::int32_t>{1, 2}, 1);
    });
  };
  const auto node = [](OnnxModel& model, const std::string& op) -> OnnxNode& {
    return *std::find_if(model.nodes.begin(), model.nodes.end(),
                         [&](const OnnxNode& each) { return each.op == op; });
  };
  const auto tensor = [](OnnxModel& model, const std::string& name) -> OnnxTensor& {
    return *std::find_if(model.tensors.begin(), model.tensors.end(),
                         [&](const OnnxTensor& each) { return each.name == name; });
  };
  EXPECT_THAT(refused([&](OnnxModel& m) { node(m, "Where").op = "Conv"; }),
              HasSubstr("the operator is not known"));
  EXPECT_THAT(refused([&](OnnxModel& m) { node(m, "MatMul").inputs[1] = "nobody"; }),
              HasSubstr("nothing is called nobody"));
  EXPECT_THAT(refused([&](OnnxModel& m) { node(m, "Softmax").attributes.clear(); }),
              HasSubstr("the attribute axis is missing"));
  EXPECT_THAT(refused([&](OnnxModel& m) { node(m, "Concat").inputs.resize(1); }),
              HasSubstr("not known"));
  EXPECT_THAT(refused([&](OnnxModel& m) {
                tensor(m, "model.embed_tokens.weight").shape = {2, 44};
              }),
              HasSubstr("there is no row 2 of 2"));
  EXPECT_THAT(refused([&](OnnxModel& m) {
                tensor(m, "model.layers.0.mlp.up_proj.weight").shape = {4, 16};
              }),
              HasSubstr("a product over 8 and 4 elements"));
  EXPECT_THAT(refused([&](OnnxModel& m) { std::swap(m.nodes.front(), m.nodes.back()); }),
              HasSubstr("nothing is called"));
  EXPECT_THAT(refused([&](OnnxModel& m) { m.outputs.front().name = "other"; }),
              HasSubstr("no node computes the output"));
}

}  // namespace
}  // namespace trireme
