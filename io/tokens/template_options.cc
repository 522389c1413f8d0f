#include "io/tokens/template_options.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/tokens/text_step.h"
#include "io/tokens/token_template.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

using nlohmann::json;

// What a class of transformers does unless the options say otherwise.
struct TemplateDefaults {
  const char* bos;
  const char* eos;
  bool adds_bos;
  bool knows_eos;  // whether it has add_eos_token
};
constexpr TemplateDefaults kOfLlama{"<s>", "</s>", true, true};
constexpr TemplateDefaults kOfGemma{"<bos>", "<eos>", true, true};
constexpr TemplateDefaults kOfGpt2{"<|endoftext|>", "<|endoftext|>", false, false};

std::optional<TemplateDefaults> defaults_of(const json& config, TokenizerForm form) {
  std::string name = config.contains("tokenizer_class") && config["tokenizer_class"].is_string()
                         ? config["tokenizer_class"].get<std::string>()
                         : std::string();
  if (name.ends_with("Fast")) {
    name.resize(name.size() - 4);
  }
  if (form == TokenizerForm::vocabulary) {
    return name.empty() || name == "GPT2Tokenizer" ? std::optional(kOfGpt2) : std::nullopt;
  }
  if (name == "GemmaTokenizer") {
    return kOfGemma;
  }
  const bool is_llama = name == "LlamaTokenizer" || form == TokenizerForm::sentencepiece;
  return is_llama ? std::optional(kOfLlama) : std::nullopt;
}

// Returns an option of which null means false, as in transformers.
bool option_or(const json& config, const char* name, bool otherwise) {
  return config.contains(name) ? flag_or(config, name, false) : otherwise;
}

// Returns the text of a token that the configuration names, or "" if it names none.
std::string named_token(const json& config, const char* name, const char* otherwise) {
  if (!config.contains(name)) {
    return otherwise;
  }
  const json& token = config[name];
  return token.is_null()     ? ""
         : token.is_object() ? text_field(token, "content")
                             : text_field(config, name);
}

// Returns null if the definition has no such token.
json id_of(const json& definition, const std::string& text) {
  if (const auto added = definition.find("added_tokens");
      added != definition.end() && added->is_array()) {
    for (const json& token : *added) {
      if (token.is_object() && token.contains("content") && token["content"] == text) {
        return token.value("id", json());
      }
    }
  }
  const auto model = definition.find("model");
  if (model == definition.end() || !model->contains("vocab") || !(*model)["vocab"].is_object()) {
    return {};
  }
  return (*model)["vocab"].value(text, json());
}

json template_of(const json& before, const json& after, const json& tokens) {
  json single = before;
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0U}}}});
  single.insert(single.end(), after.begin(), after.end());
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"pair", single},
          {"special_tokens", tokens}};
}

}  // namespace

void follow_template_options(const json& config, TokenizerForm form, json& definition) {
  if (!config.is_object()) {
    return;
  }
  if (flag_or(config, "split_special_tokens", false)) {
    throw DataError(
        "tokenizer_config.json has split_special_tokens: this program always takes the text of a "
        "special token for the token");
  }
  const auto defaults = defaults_of(config, form);
  if (!defaults) {
    return;
  }
  std::array<json, 2> around = {json::array(), json::array()};
  std::array<std::vector<std::int32_t>, 2> ids;
  json tokens = json::object();
  const auto put = [&](std::size_t side, const char* name, const char* otherwise) {
    const std::string text = named_token(config, name, otherwise);
    const json id = id_of(definition, text);
    if (text.empty() || !id.is_number_unsigned() || id > (1U << 24) - 1) {
      return false;
    }
    around[side].push_back({{"SpecialToken", {{"id", text}, {"type_id", 0U}}}});
    ids[side].push_back(id.get<std::int32_t>());
    tokens[text] = {{"id", text}, {"ids", json::array({id})}, {"tokens", json::array({text})}};
    return true;
  };
  if ((option_or(config, "add_bos_token", defaults->adds_bos) &&
       !put(0, "bos_token", defaults->bos)) ||
      (defaults->knows_eos && option_or(config, "add_eos_token", false) &&
       !put(1, "eos_token", defaults->eos))) {
    return;
  }
  const json own = definition.value("post_processor", json());
  if (const TokenTemplate now(own); now.before() == ids[0] && now.after() == ids[1]) {
    return;
  }
  const json made = template_of(around[0], around[1], tokens);
  definition["post_processor"] =
      form == TokenizerForm::vocabulary
          ? json({{"type", "Sequence"}, {"processors", json::array({own, made})}})
          : made;
}

}  // namespace trireme
