#include "src/interchange/gguf.h"

#include <cmath>
#include <cstring>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
#include "src/base/error.h"
#include "src/interchange/export_gguf.h"
#include "src/interchange/gguf_file.h"
#include "src/interchange/gguf_layout.h"
#include "src/interchange/hf_model.h"
#include "src/interchange/import_model.h"
#include "src/interchange/quantized_k.h"
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

// Blocks with a largest magnitude of 127 2^k have the scale 2^k, so that their quotients are exact.
TEST(Quantized, RoundsHalvesOfQ80AwayFromZero) {
  std::vector<float> quotients;
  for (int whole = 0; whole <= 126; ++whole) {
    for (const float at : {0.0F, 0.25F, 0.5F, 0.75F}) {
      const float x = static_cast<float>(whole) + at;
      for (const float near : {x, std::nextafter(x, 0.0F), std::nextafter(x, 128.0F)}) {
        quotients.insert(quotients.end(), {near, -near});
      }
    }
  }
  std::mt19937 random(5);
  std::uniform_real_distribution<float> any(-127, 127);
  while (quotients.size() % 31 != 0 || quotients.size() < 310'000) {
    quotients.push_back(any(random));
  }
  for (const int exponent : {-40, -3, 0, 7}) {
    const float scale = std::ldexp(1.0F, exponent);
    for (std::size_t first = 0; first < quotients.size(); first += 31) {
      std::vector<float> block = {127 * scale};
      for (std::size_t i = first; i < first + 31; ++i) {
        block.push_back(quotients[i] * scale);
      }
      const std::vector<std::byte> bytes = quantized(GgufType::q8_0, block);
      for (std::size_t i = 0; i < block.size(); ++i) {
        const auto level = static_cast<std::int8_t>(std::to_integer<std::uint8_t>(bytes[2 + i]));
        ASSERT_EQ(static_cast<float>(level), std::round(block[i] / scale))
            << block[i] << " " << scale;
      }
    }
  }
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

// What ggml's Python package reads from arbitrary blocks (judge_gguf.py).
TEST(Quantized, ReadsQ4KAsGgmlDoes) {
  const fs::path folder = TRIREME_SOURCE_DIR "/tests/interchange/golden_gguf";
  const std::string blocks = read_file(folder / "q4_k.blocks");
  const std::string expected = read_file(folder / "q4_k.f32");
  const std::int64_t count = std::ssize(blocks) / kQ4KBytes * kQ4KElements;
  ASSERT_EQ(count, 4 * 256);
  ASSERT_EQ(std::ssize(expected), 4 * count);
  std::vector<float> x(static_cast<std::size_t>(count));
  dequantize(GgufType::q4_k, reinterpret_cast<const std::byte*>(blocks.data()), count, x.data());
  EXPECT_EQ(std::memcmp(x.data(), expected.data(), expected.size()), 0);
}

std::vector<float> read_back(GgufType type, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  dequantize(type, quantized(type, x).data(), std::ssize(x), y.data());
  return y;
}

// Returns the root mean square of what the type changes.
double error_of(GgufType type, const std::vector<float>& x) {
  const std::vector<float> y = read_back(type, x);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    sum += std::pow(static_cast<double>(y[i]) - static_cast<double>(x[i]), 2);
  }
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(Quantized, Q4KIsNoWorseThanQ40) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 0.02F);
  std::vector<float> weights(64 * 256);
  for (float& x : weights) {
    x = to_float(to_bf16(normal(random)));
  }
  std::vector<float> with_outliers = weights;
  std::vector<float> shifted = weights;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    with_outliers[i] *= i % 97 == 0 ? 8.0F : 1.0F;
    shifted[i] += 0.03F;
  }
  EXPECT_LT(error_of(GgufType::q4_k, weights), 0.95 * error_of(GgufType::q4_0, weights));
  EXPECT_LT(error_of(GgufType::q4_k, weights), 0.0017);
  EXPECT_LT(error_of(GgufType::q4_k, with_outliers), error_of(GgufType::q4_0, with_outliers));
  EXPECT_LT(error_of(GgufType::q4_k, shifted), error_of(GgufType::q4_0, shifted));
}

TEST(Quantized, ZerosOfPrunedWeightsStayZero) {
  std::vector<float> sparse(256);
  for (std::size_t i = 0; i < sparse.size(); ++i) {
    sparse[i] = i % 4 < 2 ? 0.0F : std::sin(static_cast<float>(i));
  }
  for (const GgufType type : {GgufType::f16, GgufType::bf16, GgufType::q8_0, GgufType::q4_0}) {
    const std::vector<float> y = read_back(type, sparse);
    for (std::size_t i = 0; i < sparse.size(); ++i) {
      EXPECT_TRUE(i % 4 >= 2 || y[i] == 0) << static_cast<int>(type) << " " << i;
    }
  }
}

TEST(Quantized, Q4KHoldsExtremeBlocks) {
  EXPECT_EQ(read_back(GgufType::q4_k, std::vector<float>(256)), std::vector<float>(256));
  for (const float value : {1.0F, -1.0F, 4096.0F, -65504.0F * 8}) {
    for (const float y : read_back(GgufType::q4_k, std::vector<float>(256, value))) {
      EXPECT_NEAR(y, value, std::abs(value) * 0.001F);
    }
  }
  for (const float tiny : {1e-42F, -1e-30F, 1e-9F}) {
    std::vector<float> x(256);
    x[3] = tiny;
    EXPECT_EQ(read_back(GgufType::q4_k, x), std::vector<float>(256)) << tiny;
    EXPECT_EQ(read_back(GgufType::q4_0, x), std::vector<float>(256)) << tiny;
    EXPECT_EQ(read_back(GgufType::q8_0, x), std::vector<float>(256)) << tiny;
  }
  std::vector<float> x(256);  // each sub-block has a scale and a smallest number of its own
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto sub = static_cast<float>(i / 32);
    x[i] = (static_cast<float>(i % 16) - sub) * (sub + 1);
  }
  // Scales up to 8 and subtrahends up to 56 are rounded to 1/63 of these.
  constexpr float kMost = (15 * 8 + 56) / 126.0F;
  const std::vector<float> y = read_back(GgufType::q4_k, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(y[i], x[i], kMost) << i;
  }
}

GgufHead small_head() {
  GgufHead head;
  head.values = {{"general.architecture", std::string("gpt2")},
                 {"n", std::uint32_t{7}},
                 {"x", 0.5F},
                 {"flag", true},
                 {"tokens", std::vector<std::string>{"a", "bc"}},
                 {"types", std::vector<std::int32_t>{1, -3}},
                 {"scores", std::vector<float>{-1, 0.25F}}};
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
  EXPECT_THAT(refusal(changed(tensor + 20, 12)), HasSubstr("rows of 32, not whole blocks of 256"));
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
    const ExportResult result = export_golden(folder, name, GgufType::q8_0);
    EXPECT_LT(result.difference.relative, 0.01) << name;
    EXPECT_GT(result.other_types.at("float16"), 0) << name;
  }
}

TEST(Gguf, MatricesGetTheFirstTypeThatFitsTheirRows) {
  const auto type_of = [](const std::vector<std::int64_t>& shape, GgufType type) {
    return type_of_part({"w", {"w", Shape(shape)}, GgufPart::Layout::same, 0}, type);
  };
  EXPECT_EQ(type_of({2, 512}, GgufType::q4_k), GgufType::q4_k);
  EXPECT_EQ(type_of({256, 96}, GgufType::q4_k), GgufType::q8_0);
  EXPECT_EQ(type_of({256, 48}, GgufType::q4_k), GgufType::f16);
  EXPECT_EQ(type_of({256, 48}, GgufType::q4_0), GgufType::f16);
  EXPECT_EQ(type_of({256}, GgufType::q4_k), GgufType::f32);
  EXPECT_EQ(gguf_values({}, "m", GgufType::q4_k).at("general.file_type"),
            GgufValue(std::uint32_t{14}));
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
  std::vector<float> ordered(rows.size());
  to_gguf_layout(part, rows.data(), ordered.data());
  EXPECT_EQ(ordered, expected);
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

// llama.cpp multiplies scores of jais by 1 / head_dim, and has no factors.
TEST(Gguf, JaisHasItsFactorsInItsMatrices) {
  const TempFolder folder;
  export_golden(folder, "jais_untied", GgufType::f32);
  const GgufFile file(folder.path() / "out/model.gguf");
  const HfModel source(golden_model("jais_untied"));
  EXPECT_EQ(file.head().values.at("general.architecture"), GgufValue(std::string("jais")));
  EXPECT_EQ(file.head().values.at("jais.attention.max_alibi_bias"), GgufValue(8.0F));
  EXPECT_EQ(file.head().values.at("jais.feed_forward_length"), GgufValue(std::uint32_t{17}));
  const auto times = [](std::vector<float> values, float factor, std::size_t count) {
    std::for_each_n(values.begin(), count, [&](float& x) { x *= factor; });
    return values;
  };
  EXPECT_EQ(file.read("token_embd.weight"),
            times(source.read("transformer.wte.weight"), 1.5F, 480));
  EXPECT_EQ(file.read("output.weight"), times(source.read("lm_head.weight"), 0.625F, 480));
  // 1 / sqrt(4) instead of 1 / 4, in the 12 queries of 36 columns.
  EXPECT_EQ(file.read("blk.1.attn_qkv.bias"),
            times(source.read("transformer.h.1.attn.c_attn.bias"), 2, 12));
  const std::vector<float> packed = source.read("transformer.h.0.attn.c_attn.weight");
  const std::vector<float> stored = file.read("blk.0.attn_qkv.weight");
  EXPECT_EQ(stored[5], 2 * packed[5 * 36]);
  EXPECT_EQ(stored[13 * 12 + 5], packed[5 * 36 + 13]);
  EXPECT_EQ(file.read("blk.0.ffn_gate.bias"), source.read("transformer.h.0.mlp.c_fc2.bias"));
  EXPECT_EQ(file.read("blk.0.ffn_up.bias"), source.read("transformer.h.0.mlp.c_fc.bias"));
}

TEST(Gguf, RefusesModelsBetweenGpt2AndJais) {
  ModelConfig model;
  model.alibi = true;
  EXPECT_THAT(message_of<ConfigError>([&] { check_gguf_model(model); }),
              HasSubstr("llama.cpp has no architecture"));
  model.swiglu = true;
  EXPECT_NO_THROW(check_gguf_model(model));
  model = {};
  model.logit_scale = 2;
  EXPECT_THROW(check_gguf_model(model), ConfigError);
  EXPECT_NO_THROW(check_gguf_model({}));
}

}  // namespace
}  // namespace trireme
