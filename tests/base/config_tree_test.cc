#include "src/base/config_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"

namespace trireme {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string yaml_refusal(const std::string& yaml) {
  try {
    parse_config(yaml, "run.yaml");
  } catch (const ConfigError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(ConfigTree, FlattensSectionsListsAndNulls) {
  const auto entries = parse_config(
      "# a comment\n"
      "train:\n"
      "  steps: 100\n"
      "  precision: 'bf16'\n"
      "optimizer: {betas: [0.9, 0.95], clip: ~}\n"
      "run.name: a b\n",
      "run.yaml");
  ASSERT_EQ(entries.size(), 5U);
  EXPECT_EQ(entries[0].key, "train.steps");
  EXPECT_EQ(entries[0].line, 3);
  EXPECT_THAT(entries[0].value.items, ElementsAre("100"));
  EXPECT_THAT(entries[1].value.items, ElementsAre("bf16"));
  EXPECT_EQ(entries[2].key, "optimizer.betas");
  EXPECT_EQ(entries[2].value.kind, ConfigValue::Kind::list);
  EXPECT_THAT(entries[2].value.items, ElementsAre("0.9", "0.95"));
  EXPECT_EQ(entries[3].value.kind, ConfigValue::Kind::null);
  EXPECT_EQ(entries[4].key, "run.name");
  EXPECT_EQ(entries[4].line, 6);
}

TEST(ConfigTree, NothingIsAConfigurationToo) {
  EXPECT_TRUE(parse_config("", "x").empty());
  EXPECT_TRUE(parse_config("# only words\n", "x").empty());
  EXPECT_TRUE(parse_config("{}", "x").empty());
}

TEST(ConfigTree, AnEmptyMappingIsAnEntry) {
  const auto entries = parse_config("a: {b: {},\n    c: {}}\nd:\n", "x");
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[1].key, "a.c");
  EXPECT_EQ(entries[1].line, 2);
  EXPECT_EQ(entries[1].value.kind, ConfigValue::Kind::mapping);
  EXPECT_EQ(entries[1].value.to_yaml(), "{}");
  EXPECT_EQ(entries[2].value.kind, ConfigValue::Kind::null);
}

TEST(ConfigTree, AListOfMappingsKeepsTheirYaml) {
  const auto entries = parse_config(
      "data:\n"
      "  train:\n"
      "    - path: a b\n"
      "      weight: {0: 1, 10: 0.5}\n"
      "    - {path: c, epochs: ~, more: {}}\n"
      "    - {}\n"
      "  seed: 3\n",
      "x");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].key, "data.train");
  EXPECT_EQ(entries[0].line, 3);
  EXPECT_EQ(entries[0].value.kind, ConfigValue::Kind::mappings);
  EXPECT_THAT(entries[0].value.items, ElementsAre("{path: \"a b\", weight: {0: 1, 10: 0.5}}",
                                                  "{path: c, epochs: ~, more: {}}", "{}"));
  EXPECT_EQ(entries[1].key, "data.seed");
  const auto item = parse_config(entries[0].value.items[0], "x");
  ASSERT_EQ(item.size(), 3U);
  EXPECT_THAT(item[0].value.items, ElementsAre("a b"));
  EXPECT_EQ(item[2].key, "weight.10");
  EXPECT_EQ(parse_config("k: " + entries[0].value.to_yaml(), "x")[0].value.items,
            entries[0].value.items)
      << "what is written can be read";
}

TEST(ConfigTree, NamesFileAndLineOfWhatIsNotYaml) {
  EXPECT_THAT(yaml_refusal("train:\n  steps: [1, 2\n"), StartsWith("run.yaml:"));
  EXPECT_THAT(yaml_refusal("a: 1\nb: }\n"), HasSubstr("run.yaml:2: not valid YAML"));
  EXPECT_THAT(yaml_refusal("a: 1\n\tb: 2\n"), StartsWith("run.yaml:2:"));
}

TEST(ConfigTree, RefusesWhatAConfigurationNeedsNot) {
  EXPECT_THAT(yaml_refusal("a: 1\nb: 2\na: 3\n"), HasSubstr("run.yaml:3: the key a occurs twice"));
  EXPECT_THAT(yaml_refusal("a: {b: 1}\na.b: 2\n"), HasSubstr("the key a.b occurs twice"));
  EXPECT_THAT(yaml_refusal("a: &x 1\nb: *x\n"), HasSubstr("anchors (&name)"));
  EXPECT_THAT(yaml_refusal("a: !!int 1\n"), HasSubstr("tag"));
  EXPECT_THAT(yaml_refusal("a: 1\n---\nb: 2\n"), HasSubstr("second YAML document"));
  EXPECT_THAT(yaml_refusal("- a\n- b\n"), HasSubstr("but found a list"));
  EXPECT_THAT(yaml_refusal("-----BEGIN "
                           "PRIVATE KEY-----\nMC4CAQ\n"),
              AllOf(HasSubstr("but found a text"), testing::Not(HasSubstr("MC4CAQ"))))
      << "a file of a key that was named by mistake stands in no message";
  EXPECT_THAT(yaml_refusal("just words\n"), HasSubstr("but found a text"));
  EXPECT_THAT(yaml_refusal("a: [[1]]\n"), HasSubstr("a list within a list"));
  EXPECT_THAT(yaml_refusal("a: [{b: [1]}]\n"), HasSubstr("a list within a list"));
  EXPECT_THAT(yaml_refusal("a: [1, {b: 1}]\n"), HasSubstr("either values or mappings"));
  EXPECT_THAT(yaml_refusal("a: [{b: 1}, 2]\n"), HasSubstr("either values or mappings"));
  EXPECT_THAT(yaml_refusal("a: [{b: 1, b: 2}]\n"), HasSubstr("the key b occurs twice"));
  EXPECT_THAT(yaml_refusal("a: [{b c: 1}]\n"), HasSubstr("not a valid key"));
  EXPECT_THAT(yaml_refusal("a: [{{x: 1}: 1}]\n"), HasSubstr("but found a mapping"));
  EXPECT_THAT(yaml_refusal("{a: 1}: 2\n"), HasSubstr("run.yaml:1:"));
  EXPECT_THAT(yaml_refusal("[a]: 2\n"), HasSubstr("run.yaml:1:"));
  EXPECT_THAT(yaml_refusal("a b: 2\n"), HasSubstr("not a valid key"));
  EXPECT_THAT(yaml_refusal("'': 2\n"), HasSubstr("not a valid key"));
  for (const char* const nul :
       {"a: 1\nb: \"x\\0y\"\n", "a: 1\nb: [x, \"\\x00\"]\n", "a: 1\n\"b\\0\": x\n"}) {
    EXPECT_THAT(yaml_refusal(nul), HasSubstr("run.yaml:2: a value must not contain a NUL byte"))
        << nul;
  }
}

TEST(ConfigTree, HostileSizesEndQuickly) {
  EXPECT_THAT(yaml_refusal(std::string(kMaxConfigBytes + 1, ' ')), HasSubstr("may have at most"));
  EXPECT_THAT(yaml_refusal(std::string("a: \0b", 5)), HasSubstr("0x00"));
  EXPECT_THAT(yaml_refusal("\x7F"
                           "ELF"),
              HasSubstr("not a text file"));
  EXPECT_THAT(yaml_refusal("a: " + std::string(100000, '[')), StartsWith("run.yaml:1:"));
  EXPECT_THAT(yaml_refusal("a: " + std::string(100000, '{')), StartsWith("run.yaml:1:"));
  std::string deep;
  for (int level = 0; level < 500; ++level) {
    deep += std::string(static_cast<std::size_t>(level), ' ') + "k:\n";
  }
  EXPECT_THAT(yaml_refusal(deep + "\n"), HasSubstr("nested deeper than 8"));
  std::string many;
  for (int i = 0; i < 20000; ++i) {
    many += "k" + std::to_string(i) + ": 1\n";
  }
  EXPECT_THAT(yaml_refusal(many), HasSubstr("more than 10000 keys"));
  std::string bomb = "a: &a [x]\n";
  for (char c = 'b'; c < 'k'; ++c) {
    bomb += std::string(1, c) + ": &" + c + " [*" + static_cast<char>(c - 1) + "]\n";
  }
  EXPECT_THAT(yaml_refusal(bomb), HasSubstr("anchor"));
}

TEST(ConfigTree, ValuesSurviveTheWayToYamlAndBack) {
  const std::vector<std::string> texts = {
      "plain", "",     "a b", "null",      "~",   "- x",     "a: b", "#",    "\"quo\\", "'",
      "[1]",   "true", "1e5", "tab\there", "ä€",  "line\nb", "a#b",  "a #b", "*a",      "&a",
      "-",     "!tag", "{",   "%dir",      "@at", "`",       "|",    ">"};
  for (const std::string& text : texts) {
    const std::string yaml = "k: " + ConfigValue::scalar(text).to_yaml() +
                             "\nl: " + ConfigValue::list({text, "x", text}).to_yaml() + "\n";
    const auto entries = parse_config(yaml, "back");
    ASSERT_EQ(entries.size(), 2U) << yaml;
    EXPECT_EQ(entries[0].value.kind, ConfigValue::Kind::scalar) << yaml;
    EXPECT_THAT(entries[0].value.items, ElementsAre(text));
    EXPECT_THAT(entries[1].value.items, ElementsAre(text, "x", text));
  }
  EXPECT_EQ(parse_config("k: " + ConfigValue{}.to_yaml(), "x")[0].value.kind,
            ConfigValue::Kind::null);
}

TEST(NearestWord, FindsSlipsAndWrongSections) {
  const std::vector<std::string> known = {"train.steps", "train.seed", "optimizer.lr",
                                          "data.train"};
  EXPECT_EQ(nearest_word("train.stesp", known), "train.steps");
  EXPECT_EQ(nearest_word("steps", known), "train.steps");
  EXPECT_EQ(nearest_word("model.seed", known), "train.seed");
  EXPECT_EQ(nearest_word("optimiser.lr", known), "optimizer.lr");
  EXPECT_EQ(nearest_word("entirely.else_where", known), "");
}

// Deterministic mutations of a good file either parse or throw ConfigError.
TEST(ConfigTree, MutationsNeverEscape) {
  const std::string good =
      "model: {preset: gpt2-124m, layers: 3}\n"
      "train:\n  steps: 100\n  name: \"a\\x41\"\n  list:\n    - 1\n    - two\n"
      "optimizer: {betas: [0.9, 0.95], clip: ~} # comment\n"
      "text: |\n  block\n  scalar\n";
  const std::string alphabet = "{}[]:,-#&*!|>'\"%@`\n\t\\ ~?.0aZ\xC3\xFF";
  std::uint64_t state = 1;
  const auto random = [&state](std::size_t n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state >> 33) % n;
  };
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = good;
    for (std::size_t edit = 0; edit < 1 + random(4); ++edit) {
      const std::size_t at = random(text.size());
      switch (random(4)) {
        case 0:
          text[at] = alphabet[random(alphabet.size())];
          break;
        case 1:
          text.insert(at, 1, alphabet[random(alphabet.size())]);
          break;
        case 2:
          text.erase(at, 1 + random(5));
          break;
        default:
          text.insert(at, text.substr(random(text.size()), random(20)));
      }
    }
    try {
      parse_config(text, "fuzz");
      ++accepted;
    } catch (const ConfigError&) {
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 3900);
}

}  // namespace
}  // namespace trireme
