#include "src/interchange/hf_model.h"

#include <cstring>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/safetensors.h"
#include "src/base/error.h"
#include "tests/interchange/small_models.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

// A copy of a golden model in one file, to be changed.
class ChangedModel {
 public:
  explicit ChangedModel(const std::string& name) {
    copy_golden(name, path());
    const std::string bytes = read_file(file());
    header_ = parse_safetensors_header(bytes, std::ssize(bytes));
    data_ = bytes.substr(static_cast<std::size_t>(header_.data_offset));
  }
  fs::path path() const { return folder_.path() / "model"; }
  fs::path file() const { return path() / "model.safetensors"; }
  SafetensorsEntry& entry(const std::string& name) {
    for (SafetensorsEntry& each : header_.entries) {
      if (each.name == name) {
        return each;
      }
    }
    throw std::runtime_error("no tensor " + name);
  }
  void set_bytes(const std::string& tensor, const std::string& bytes) {
    data_.replace(static_cast<std::size_t>(entry(tensor).begin), bytes.size(), bytes);
  }
  void append(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
              const std::string& bytes) {
    const auto begin = std::ssize(data_);
    header_.entries.push_back({name, dtype, std::move(shape), begin, begin + std::ssize(bytes)});
    data_ += bytes;
  }
  void remove_last() {
    data_.resize(static_cast<std::size_t>(header_.entries.back().begin));
    header_.entries.pop_back();
  }
  std::string bytes_of(const std::string& tensor) {
    const SafetensorsEntry& found = entry(tensor);
    return data_.substr(static_cast<std::size_t>(found.begin),
                        static_cast<std::size_t>(found.end - found.begin));
  }
  void save() const {
    write_file_durably(file(),
                       encode_safetensors_header(header_.metadata, header_.entries, 8) + data_);
  }
  std::string refusal() const {
    save();
    return message_of<DataError>([&] {
      const HfModel model(path());
      for (const ModelTensor& tensor : model.tensors()) {
        (void)model.read(tensor.name);
      }
    });
  }

 private:
  TempFolder folder_;
  SafetensorsHeader header_;
  std::string data_;
};

TEST(HfModel, ReadsTensorsFromOneFileAndFromSeveral) {
  for (const std::string& name : kGoldenModels) {
    const HfModel model(golden_model(name));
    EXPECT_FALSE(model.tensors().empty());
    for (const ModelTensor& tensor : model.tensors()) {
      EXPECT_EQ(std::ssize(model.read(tensor.name)), tensor.shape.elements());
    }
  }
  EXPECT_EQ(HfModel(golden_model("gpt2")).dtype(), DType::f32);
  EXPECT_EQ(HfModel(golden_model("gpt2_untied")).dtype(), DType::f16);
  EXPECT_EQ(HfModel(golden_model("llama3") / "model.safetensors").dtype(), DType::bf16);
}

TEST(HfModel, AcceptsGpt2WithoutPrefixAndWithMasks) {
  ChangedModel changed("gpt2_untied");
  const std::vector<float> before = HfModel(changed.path()).read("transformer.h.0.ln_1.weight");
  changed.append("h.0.attn.bias", DType::f32, {1, 1, 1, 1}, std::string(4, '\0'));
  changed.entry("transformer.h.0.ln_1.weight").name = "h.0.ln_1.weight";
  changed.save();
  EXPECT_EQ(HfModel(changed.path()).read("transformer.h.0.ln_1.weight"), before);
}

TEST(HfModel, LeavesOutPaddingOfTheVocabulary) {
  ChangedModel changed("gpt2_untied");
  edit_config(changed.path(), {{"vocab_size", 37}});
  const HfModel model(changed.path());
  EXPECT_EQ(model.padding_rows(), 3);
  EXPECT_EQ(model.read("transformer.wte.weight").size(), 37U * 12);
}

TEST(HfModel, AcceptsATiedHeadOnlyIfItIsTheEmbedding) {
  ChangedModel changed("llama3");
  std::string bytes = changed.bytes_of("model.embed_tokens.weight");
  changed.append("lm_head.weight", DType::bf16, {40, 16}, bytes);
  changed.save();
  EXPECT_NO_THROW(HfModel{changed.path()});
  bytes[7] ^= 1;
  changed.remove_last();
  changed.append("lm_head.weight", DType::bf16, {40, 16}, bytes);
  EXPECT_THAT(changed.refusal(), HasSubstr("lm_head.weight differs from the embedding"));
}

TEST(HfModel, RefusesShapesThatDisagreeWithTheConfiguration) {
  ChangedModel changed("llama3");
  changed.entry("model.layers.1.mlp.up_proj.weight").shape = {16, 22};
  EXPECT_THAT(changed.refusal(), AllOf(HasSubstr("model.layers.1.mlp.up_proj.weight"),
                                       HasSubstr("[16, 22]"), HasSubstr("[22, 16]")));
  ChangedModel wider("llama3");
  edit_config(wider.path(), {{"num_hidden_layers", 9}});
  EXPECT_THAT(wider.refusal(), AllOf(HasSubstr("the files hold only"),
                                     HasSubstr("tensor model.layers.2.input_layernorm.weight is "
                                               "missing")));
  edit_config(wider.path(), {{"num_hidden_layers", 65536}});
  EXPECT_THAT(wider.refusal(), HasSubstr("is missing"));
  ChangedModel shorter("llama3");
  edit_config(shorter.path(), {{"intermediate_size", 44}});
  EXPECT_THAT(shorter.refusal(),
              AllOf(HasSubstr("model.layers.0.mlp.down_proj.weight has the shape "
                              "[16, 22]"),
                    HasSubstr("[16, 44]"), HasSubstr("the files hold only")));
  ChangedModel less("llama3");
  edit_config(less.path(), {{"num_hidden_layers", 1}});
  EXPECT_THAT(less.refusal(), AllOf(HasSubstr("model.layers.1."), HasSubstr("not part of")));
}

TEST(HfModel, RefusesWeightsThatAreNotNumbers) {
  ChangedModel changed("llama3");
  changed.set_bytes("model.norm.weight", std::string("\xC0\x7F", 2));  // NaN in bf16
  EXPECT_THAT(changed.refusal(),
              AllOf(HasSubstr("element 0 of tensor model.norm.weight"), HasSubstr("nan")));
  ChangedModel integers("llama3");
  integers.entry("model.norm.weight").dtype = DType::u16;
  EXPECT_THAT(integers.refusal(), HasSubstr("its elements are U16"));
}

TEST(HfModel, RefusesMissingAndUnfinishedFiles) {
  const TempFolder folder;
  const fs::path path = folder.path() / "model";
  copy_golden("llama2", path);
  const fs::path second = path / "model-00002-of-00003.safetensors";
  const std::string bytes = read_file(second);
  write_file_durably(second, bytes.substr(0, bytes.size() / 2));
  const auto refusal = [&] { return message_of<DataError>([&] { HfModel{path}; }); };
  EXPECT_THAT(refusal(), AllOf(HasSubstr(second.string()), HasSubstr("completely")));
  write_file_durably(second, "");
  EXPECT_THAT(refusal(), HasSubstr(second.string()));
  fs::remove(second);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(second.string()), HasSubstr("missing")));
  fs::copy(path / "model-00001-of-00003.safetensors", second);
  EXPECT_THAT(refusal(), HasSubstr("another file has a tensor"));
  fs::remove(path / "config.json");
  EXPECT_THAT(message_of<NotFound>([&] { HfModel{path}; }), HasSubstr("config.json is missing"));
  EXPECT_THAT(message_of<NotFound>([&] { HfModel{folder.path()}; }), HasSubstr("config.json"));
}

TEST(HfModel, RefusesListsThatLeadElsewhere) {
  const TempFolder folder;
  const fs::path path = folder.path() / "model";
  copy_golden("llama2", path);
  const fs::path list = path / "model.safetensors.index.json";
  const json good = parse_json(read_file(list));
  const auto refusal = [&](const json& changes) {
    json changed = good;
    changed.merge_patch(changes);
    write_file_durably(list, changed.dump());
    return message_of<DataError>([&] { HfModel{path}; });
  };
  EXPECT_THAT(refusal({{"weight_map", {{"lm_head.weight", "../x.safetensors"}}}}),
              HasSubstr("not the name of a safetensors file"));
  EXPECT_THAT(refusal({{"weight_map", {{"lm_head.weight", "model-00002-of-00003.safetensors"}}}}),
              HasSubstr("it is not there"));
  EXPECT_THAT(refusal({{"weight_map", {{"lm_head.weight", nullptr}}}}),
              HasSubstr("does not list the tensor lm_head.weight"));
  EXPECT_THAT(refusal({{"weight_map", 3}}), HasSubstr("weight_map"));
}

TEST(HfModel, RefusesHostileHeaders) {
  ChangedModel changed("llama3");
  changed.save();
  const std::string good = read_file(changed.file());
  const auto refusal = [&](const std::string& bytes) {
    write_file_durably(changed.file(), bytes);
    return message_of<DataError>([&] { HfModel{changed.path()}; });
  };
  const auto with_header = [](const std::string& header) {
    std::string bytes(8, '\0');
    const std::uint64_t n = header.size();
    std::memcpy(bytes.data(), &n, 8);
    return bytes + header;
  };
  EXPECT_THAT(refusal(good + "x"), HasSubstr("model.safetensors"));
  EXPECT_THAT(refusal(std::string(8, '\xFF') + good.substr(8)), HasSubstr("header of"));
  EXPECT_THAT(refusal(with_header(R"({"a":{"dtype":"F32","shape":[576460752303423488,64],)"
                                  R"("data_offsets":[0,0]}})")),
              HasSubstr("overflows"));
  EXPECT_THAT(refusal(with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                                  R"("b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})") +
                      "123456"),
              HasSubstr("overlap"));
  EXPECT_THAT(refusal(with_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})")),
              HasSubstr("offsets"));
}

}  // namespace
}  // namespace trireme
