#include "io/tokens/template_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/tokens/token_template.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Returns a definition whose template puts <s> in front of a text.
json definition_with_begin() {
  return parse_json(R"({
    "added_tokens": [{"id": 1, "content": "<s>"}, {"id": 2, "content": "</s>"}],
    "model": {"vocab": {"a": 0, "<s>": 1, "</s>": 2}},
    "post_processor": {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                 {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
      "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}})");
}

TokenTemplate template_with(const json& config,
                            TokenizerForm form = TokenizerForm::tokenizer_json) {
  json definition = definition_with_begin();
  follow_template_options(config, form, definition);
  return TokenTemplate(definition["post_processor"]);
}

TEST(TemplateOptions, CountForTheClassesThatMakeTheirTemplate) {
  const json off = {{"add_bos_token", false}, {"add_eos_token", true}};
  json config = off;
  EXPECT_THAT(template_with(config).before(), ElementsAre(1)) << "no class is named";
  config["tokenizer_class"] = "PreTrainedTokenizerFast";
  EXPECT_THAT(template_with(config).before(), ElementsAre(1));
  config["tokenizer_class"] = "GPT2TokenizerFast";
  EXPECT_THAT(template_with(config).before(), ElementsAre(1))
      << "it reads a tokenizer.json as it is";
  config["tokenizer_class"] = "LlamaTokenizerFast";
  EXPECT_THAT(template_with(config).before(), IsEmpty());
  EXPECT_THAT(template_with(config).after(), ElementsAre(2));
  EXPECT_THAT(template_with(off, TokenizerForm::sentencepiece).after(), ElementsAre(2));
}

TEST(TemplateOptions, ChangeNothingThatIsRightOrUnknown) {
  const auto changed = [](const json& config) {
    json definition = definition_with_begin();
    follow_template_options(config, TokenizerForm::tokenizer_json, definition);
    return definition != definition_with_begin();
  };
  EXPECT_FALSE(changed(nullptr));
  EXPECT_FALSE(changed({{"tokenizer_class", "LlamaTokenizer"}}))
      << "it adds <s> unless told not to";
  EXPECT_FALSE(changed({{"tokenizer_class", "LlamaTokenizer"}, {"bos_token", "<none>"}}));
  EXPECT_FALSE(changed({{"tokenizer_class", "GemmaTokenizer"}})) << "there is no <bos>";
  EXPECT_TRUE(changed({{"tokenizer_class", "LlamaTokenizer"}, {"add_bos_token", nullptr}}));
}

TEST(TemplateOptions, AreRefusedIfTheyCannotBeFollowed) {
  EXPECT_THAT(message_of<DataError>([] {
                (void)template_with({{"split_special_tokens", true}});
              }),
              HasSubstr("split_special_tokens"));
  EXPECT_THROW((void)template_with({{"tokenizer_class", "LlamaTokenizer"}, {"add_bos_token", 1}}),
               DataError);
}

}  // namespace
}  // namespace trireme
