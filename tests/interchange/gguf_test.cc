#include "src/interchange/gguf.h"

#include <cmath>
#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
#include "src/base/error.h"
#include "src/interchange/export_gguf.h"
#include "src/interchange/gguf_file.h"
#include "src/interchange/gguf_layout.h"
#include "src/interchange/hf_model.h"
#include "src/interchange/import_model.h"
#include "tests/interchange/small_models.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string hex(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    text += fmt::format("{:02x}", std::to_integer<int>(byte));
  }
  return text;
}

std::vector<std::byte> quantized(GgufType type, const std::vector<float>& x) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(quantized_bytes(type, std::ssize(x))));
  quantize(type, x.data(), std::ssize(x), bytes.data());
  return bytes;
}

// What ggml makes of the same numbers.
TEST(Quantized, HasTheBytesOfGgml) {
  std::vector<float> x;
  for (int i = 0; i < 32; ++i) {
    const float value = (static_cast<float>(i) - 7.3F) * 0.11F;
    x.push_back(i % 2 == 0 ? value : -value);
  }
  EXPECT_EQ(hex(quantized(GgufType::q8_0, x)),
            "4125d922e417ee0cf90204f70eec19e124d72fcc39c144b74fac59a164966f8c7a81");
  EXPECT_EQ(hex(quantized(GgufType::q4_0, x)), "3735b65ac649c739d838e827e917fa16fa05");
  EXPECT_EQ(hex(quantized(GgufType::q8_0, std::vector<float>(32))), std::string(68, '0'));
}

TEST(Quantized, ReadsWhatItWrites) {
  std::vector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i)) * (i < 32 ? 3.0F : 0.01F);
  }
  for (const auto& [type, most] : {std::pair(GgufType::f32, 0.0F),
                                   {GgufType::f16, 0.001F},
                                   {GgufType::bf16, 0.01F},
                                   {GgufType::q8_0, 0.02F},
                                   {GgufType::q4_0, 0.4F}}) {
    std::vector<float> y(x.size());
    dequantize(type, quantized(type, x).data(), std::ssize(x), y.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      EXPECT_NEAR(y[i], x[i], most * (i < 32 ? 1 : 0.01F)) << static_cast<int>(type) << " " << i;
    }
  }
}

GgufHead small_head() {
  GgufHead head;
  head.values = {{"general.architecture", std::string("gpt2")},
                 {"n", std::uint32_t{7}},
                 {"x", 0.5F},
                 {"flag", true},
                 {"tokens", std::vector<std::string>{"a", "bc"}},
                 {"types", std::vector<std::int32_t>{1, -3}}};
  head.tensors = {{"w", {2, 32}, GgufType::q8_0, 0}, {"b", {3}, GgufType::f32, 0}};
  return head;
}

TEST(Gguf, ReadsTheHeadThatItWrites) {
  GgufHead head = small_head();
  const std::string text = encode_gguf_head(head);
  EXPECT_EQ(head.data_offset % kGgufAlignment, 0);
  EXPECT_EQ(head.tensors[1].offset, 96);  // 68 bytes of w, padded
  const GgufHead again = parse_gguf_head(text + std::string(128, '\0'), std::ssize(text) + 128);
  EXPECT_EQ(again.values, head.values);
  ASSERT_EQ(again.tensors.size(), 2U);
  EXPECT_EQ(again.tensors[0].shape, head.tensors[0].shape);
  EXPECT_EQ(again.tensors[1].offset, 96);
  EXPECT_EQ(again.data_offset, head.data_offset);
}

TEST(Gguf, RefusesDamagedHeads) {
  GgufHead head = small_head();
  const std::string good = encode_gguf_head(head) + std::string(128, '\0');
  const auto refusal = [](const std::string& text) {
    return message_of<DataError>([&] { parse_gguf_head(text, std::ssize(text)); });
  };
  const auto changed = [&](std::size_t at, std::uint64_t number) {
    std::string text = good;
    std::memcpy(text.data() + at, &number, sizeof number);
    return text;
  };
  EXPECT_THAT(refusal("GGML" + good.substr(4)), HasSubstr("GGUF"));
  EXPECT_THAT(refusal(good.substr(0, 130)), HasSubstr("ends within its head"));
  EXPECT_THAT(refusal(good.substr(0, good.size() - 32)), HasSubstr("tensors have 128 bytes"));
  EXPECT_THAT(refusal(changed(4, 2)), HasSubstr("version 2"));
  EXPECT_THAT(refusal(changed(8, std::uint64_t{1} << 60)), HasSubstr("more than it can hold"));
  EXPECT_THAT(refusal(changed(24, std::uint64_t{1} << 62)), HasSubstr("ends within its head"));
  const std::size_t tensor = good.find(std::string("\x01\0\0\0\0\0\0\0w", 9)) + 9;
  EXPECT_THAT(refusal(changed(tensor, 9)), HasSubstr("9 dimensions"));
  EXPECT_THAT(refusal(changed(tensor + 4, std::uint64_t{1} << 50)), HasSubstr("extent"));
  EXPECT_THAT(refusal(changed(tensor + 4, 33)), HasSubstr("whole blocks"));
  EXPECT_THAT(refusal(changed(tensor + 20, 99)), HasSubstr("type 99"));
  EXPECT_THAT(refusal(changed(tensor + 24, 7)), HasSubstr("starts at byte 7"));
}

ExportResult export_golden(const TempFolder& folder, const std::string& name, GgufType type) {
  SelfCommunicator self;
  StepKeys keys(self, {});
  if (!fs::exists(folder.path() / name)) {
    import_model({.source = golden_model(name), .out = folder.path() / name}, self, keys);
  }
  fs::remove_all(folder.path() / "out");
  return export_to_gguf({.checkpoint = folder.path() / name, .out = folder.path() / "out"}, type,
                        self, keys);
}

TEST(Gguf, AnExportHasTheLogitsOfTheCheckpoint) {
  for (const std::string& name : kGoldenModels) {
    const TempFolder folder;
    EXPECT_LT(export_golden(folder, name, GgufType::f32).difference.largest, 1e-5) << name;
    // The rows of these models are too short for blocks, so that their matrices become f16.
    EXPECT_LT(export_golden(folder, name, GgufType::q8_0).difference.relative, 0.01) << name;
  }
}

TEST(Gguf, RefusesScaledPositionsOfQwen2) {
  const TempFolder folder;
  const fs::path source = folder.path() / "source";
  copy_golden("qwen2", source);
  edit_config(source, {{"rope_parameters",
                        {{"rope_type", "llama3"},
                         {"factor", 4.0},
                         {"low_freq_factor", 1.0},
                         {"high_freq_factor", 4.0},
                         {"original_max_position_embeddings", 32}}}});
  SelfCommunicator self;
  StepKeys keys(self, {});
  import_model({.source = source, .out = folder.path() / "imported"}, self, keys);
  EXPECT_THAT(message_of<ConfigError>([&] {
                export_to_gguf(
                    {.checkpoint = folder.path() / "imported", .out = folder.path() / "out"},
                    GgufType::f32, self, keys);
              }),
              HasSubstr("qwen2"));
}

// The order of rows that llama.cpp's converter gives to queries and keys, for heads of 4 channels.
TEST(Gguf, OrdersTheRowsOfQueriesInPairs) {
  GgufPart part{"blk.0.attn_q.weight", {"q", {8, 1}}, GgufPart::Layout::pairs, 2};
  const std::vector<float> rows = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<float> expected = {0, 2, 1, 3, 4, 6, 5, 7};
  EXPECT_EQ(to_gguf_layout(part, rows), expected);
  EXPECT_EQ(from_gguf_layout(part, expected), rows);
}

TEST(Gguf, NamesAndShapesAreThoseOfLlamaCpp) {
  const TempFolder folder;
  export_golden(folder, "gpt2", GgufType::f16);
  const GgufHead gpt2 = GgufFile(folder.path() / "out/model.gguf").head();
  const auto shape_of = [](const GgufHead& head, const std::string& name) {
    for (const GgufTensor& tensor : head.tensors) {
      if (tensor.name == name) {
        return tensor.shape;
      }
    }
    return std::vector<std::int64_t>();
  };
  using Extents = std::vector<std::int64_t>;
  EXPECT_EQ(shape_of(gpt2, "blk.1.attn_qkv.weight"), (Extents{36, 12}));
  EXPECT_EQ(shape_of(gpt2, "blk.0.ffn_down.weight"), (Extents{12, 48}));
  EXPECT_EQ(shape_of(gpt2, "position_embd.weight"), (Extents{224, 12}));
  EXPECT_EQ(shape_of(gpt2, "output_norm.bias"), (Extents{12}));
  EXPECT_EQ(gpt2.values.at("gpt2.block_count"), GgufValue(std::uint32_t{2}));
  const TempFolder other;
  export_golden(other, "llama3", GgufType::bf16);
  const GgufHead llama = GgufFile(other.path() / "out/model.gguf").head();
  EXPECT_EQ(shape_of(llama, "blk.0.attn_k.weight"), (Extents{12, 16}));
  EXPECT_EQ(shape_of(llama, "rope_freqs.weight"), (Extents{3}));
  EXPECT_EQ(shape_of(llama, "output.weight"), Extents()) << "tied";
  EXPECT_EQ(llama.values.at("llama.attention.head_count_kv"), GgufValue(std::uint32_t{2}));
  EXPECT_EQ(llama.values.at("llama.rope.freq_base"), GgufValue(100.0F));
}

TEST(Gguf, Qwen2HasItsBiasesAndUnorderedRows) {
  const TempFolder folder;
  export_golden(folder, "qwen2", GgufType::f32);
  const GgufFile file(folder.path() / "out/model.gguf");
  const HfModel source(golden_model("qwen2"));
  EXPECT_EQ(file.head().values.at("general.architecture"), GgufValue(std::string("qwen2")));
  EXPECT_EQ(file.head().values.at("qwen2.attention.head_count_kv"), GgufValue(std::uint32_t{2}));
  EXPECT_EQ(file.read("blk.1.attn_k.bias"), source.read("model.layers.1.self_attn.k_proj.bias"));
  EXPECT_EQ(file.read("blk.0.attn_q.weight"),
            source.read("model.layers.0.self_attn.q_proj.weight"));
}

}  // namespace
}  // namespace trireme
