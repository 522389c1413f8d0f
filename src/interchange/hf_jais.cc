#include "src/interchange/hf_jais.h"

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/nn/alibi.h"

namespace trireme {
namespace {

using nlohmann::json;

// Returns an option that has an older name. If both are there, they must be equal.
double renamed_real(ConfigFields& fields, const char* name, const char* older) {
  const double value = fields.real(name, fields.real(older, 1.0));
  if (fields.find(older) != nullptr && fields.real(older) != value) {
    throw DataError(
        fmt::format("its options '{}' and '{}', an older name of it, differ", name, older));
  }
  return value;
}

double logit_scale(ConfigFields& fields) {
  const bool is_older = fields.find("width_scale") != nullptr;
  const bool is_newer =
      fields.find("mup_output_alpha") != nullptr || fields.find("mup_width_scale") != nullptr;
  const double newer = fields.real("mup_output_alpha", 1.0) * fields.real("mup_width_scale", 1.0);
  const double older = fields.real("width_scale", newer);
  if (is_older && is_newer && older != newer) {
    throw DataError(
        fmt::format("its option 'width_scale' is {}, but mup_output_alpha x mup_width_scale is {}",
                    older, newer));
  }
  return older;
}

bool scales_by_width(ConfigFields& fields) {
  const char* const name = "mup_scale_qk_dot_by_d";
  const char* const older = "scale_qk_dot_by_d";
  const bool value = fields.flag(name, fields.flag(older, false));
  if (fields.find(older) != nullptr && fields.flag(older, false) != value) {
    throw DataError(
        fmt::format("its options '{}' and '{}', an older name of it, differ", name, older));
  }
  return value;
}

// The models come with the code of their classes, whose formulas this program has itself. It runs
// none of that code.
void check_auto_map(ConfigFields& fields) {
  const json* const found = fields.find("auto_map");
  const json map = found == nullptr ? json::object() : *found;
  if (!map.is_object()) {
    throw DataError("field 'auto_map' is not an object");
  }
  for (const auto& [name, value] : map.items()) {
    std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    const std::size_t repository = text.find("--");
    text.erase(0, repository == std::string::npos ? 0 : repository + 2);
    if (!text.starts_with("configuration_jais.JAIS") && !text.starts_with("modeling_jais.JAIS")) {
      throw DataError(fmt::format(
          "its option 'auto_map' names the code {} for {}: of this model_type, this program "
          "computes only the classes of configuration_jais and modeling_jais",
          printable(text), printable(name)));
    }
  }
}

}  // namespace

bool is_plain_gpt2(const ModelConfig& m) {
  return m.family == Family::gpt2 && !m.alibi && !m.swiglu && m.embedding_scale == 1 &&
         m.logit_scale == 1 && m.attention_scale == 0;
}

void read_jais_options(ConfigFields& fields, ModelConfig& m) {
  check_auto_map(fields);
  const std::string positions = fields.text("position_embedding_type", "learned");
  m.alibi = positions == "alibi";
  if (!m.alibi && positions != "learned") {
    throw DataError(
        fmt::format("its option 'position_embedding_type' is '{}': this program computes only "
                    "alibi and learned",
                    printable(positions)));
  }
  fields.must_be("alibi_scaling", nullptr);
  m.swiglu = fields.text("activation_function", "gelu_new") == "swiglu";
  m.embedding_scale = renamed_real(fields, "mup_embeddings_scale", "embeddings_scale");
  m.logit_scale = logit_scale(fields);
  if (scales_by_width(fields) && m.hidden > 0) {
    m.attention_scale = static_cast<double>(m.heads) / static_cast<double>(m.hidden);
  }
}

void put_jais_options(const ModelConfig& m, json& fields) {
  fields["architectures"] = {kJaisArchitecture};
  fields["model_type"] = "jais";
  fields["n_inner"] = m.ffn;
  fields["activation_function"] = m.swiglu ? "swiglu" : "gelu_new";
  fields["position_embedding_type"] = m.alibi ? "alibi" : "learned";
  fields["alibi_scaling"] = nullptr;
  fields["mup_embeddings_scale"] = m.embedding_scale;
  fields["mup_output_alpha"] = m.logit_scale;
  fields["mup_width_scale"] = 1.0;
  fields["mup_scale_qk_dot_by_d"] = m.attention_scale != 0;
}

void check_hf_scales(const ModelConfig& m) {
  const auto by_width = static_cast<float>(1 / static_cast<double>(m.head_dim));
  if (m.attention_scale != 0 && static_cast<float>(m.attention_scale) != by_width) {
    throw ConfigError(fmt::format(
        "model.attention_scale is {}, but config.json can only say 1 / sqrt(head_dim) or 1 / "
        "head_dim, which is {}: export it with --format onnx",
        m.attention_scale, by_width));
  }
}

std::vector<float> jais_slopes(const ModelConfig& m) {
  std::vector<float> slopes;
  for (std::int64_t head = 0; head < m.heads; ++head) {
    slopes.push_back(alibi_slope(head, m.heads));
  }
  return slopes;
}

}  // namespace trireme
