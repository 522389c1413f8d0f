#include "io/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/chat/jinja_parser.h"
#include "io/chat/jinja_run.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

const std::filesystem::path kGolden =
    std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/io/chat/golden";
const char* const kChatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

ordered_json golden(const std::string& name) {
  return ordered_json::parse(read_file(kGolden / (name + ".json")));
}

// Returns what a template without messages prints, or its error.
std::string printed(const std::string& source) {
  try {
    return render_jinja(parse_jinja(source), {{"bos_token", JinjaValue::text("<s>")},
                                              {"eos_token", JinjaValue::text("</s>")}})
        .text;
  } catch (const DataError& error) {
    return std::string("refused: ") + error.what();
  }
}

class GoldenChats : public testing::TestWithParam<const char*> {};

// The files are from make_golden.py, which asks transformers.
TEST_P(GoldenChats, AreWrittenAsTransformersDoes) {
  const ordered_json expected = golden(GetParam());
  const ChatTemplate chat(expected["template"], expected["tokens"]);
  int texts = 0;
  for (const ordered_json& one : expected["cases"]) {
    const auto render = [&] { return chat.render(one["messages"], one["tools"], one["asks"]); };
    if (one["text"].is_null()) {
      EXPECT_THROW(render(), DataError) << one;
      continue;
    }
    ++texts;
    EXPECT_EQ(render(), one["text"].get<std::string>()) << one["name"];
    if (one.contains("answers") && !one["answers"].empty() && one["asks"] == false) {
      const RenderedChat found = chat.render_answers(one["messages"], one["tools"]);
      ordered_json answers = ordered_json::array();
      for (const auto& [begin, end] : found.answers) {
        answers.push_back(found.text.substr(begin, end - begin));
      }
      EXPECT_EQ(answers, one["answers"]) << one["name"];
    }
  }
  EXPECT_GE(texts, 4);
}

INSTANTIATE_TEST_SUITE_P(Templates, GoldenChats,
                         testing::Values("chatml", "zephyr", "llama2", "llama3", "llama31",
                                         "mistral", "qwen2", "qwen25", "gemma", "marked",
                                         "thinking"));

TEST(JinjaRun, PrintsWhatJinjaDoes) {
  int refused = 0;
  for (const ordered_json& one : golden("fragments")) {
    const std::string source = one["template"];
    const std::string found = printed(source);
    if (one["text"].is_null()) {
      ++refused;
      EXPECT_TRUE(found.starts_with("refused: line ")) << source << " -> " << found;
    } else {
      EXPECT_EQ(found, one["text"].get<std::string>()) << source;
    }
  }
  EXPECT_EQ(refused, 4);
}

TEST(JinjaParser, RefusesWhatItDoesNotKnowByNameAndLine) {
  const auto refused = [](const std::string& source) {
    return message_of<DataError>([&] { parse_jinja("\n\n" + source); });
  };
  for (const auto& [source, name] :
       {std::pair{"{% macro f() %}{% endmacro %}", "the tag 'macro'"},
        {"{% include 'x' %}", "the tag 'include'"},
        {"{% set x %}a{% endset %}", "the tag 'set' is supported as"},
        {"{% if false %}{{ 1 | pprint }}{% endif %}", "the filter 'pprint'"},
        {"{{ 1 is sameas 1 }}", "the test 'sameas'"},
        {"{{ 'a'.encode() }}", "the method 'encode'"},
        {"{{ f(*x) }}", "arguments with *"},
        {"{{ 2 ** 3 }}", "powers"},
        {"{% for i in x recursive %}{% endfor %}", "recursive"},
        {"{{ 'a' ", "the tag does not end"},
        {"{% if x %}a", "the tag 'endif' is missing"},
        {"{% endif %}", "the tag 'endif' is not supported"},
        {"{% break %}", "'break' stands outside a loop"},
        {"{{ 1 ] }}", "']' closes nothing"},
        {"{{ a ! b }}", "'!' is not part of the language"}}) {
    EXPECT_THAT(refused(source), AllOf(HasSubstr("line 3 of the chat template"), HasSubstr(name)));
  }
}

TEST(JinjaRun, RefusesAtItsLineWhatOnlyAConversationShows) {
  EXPECT_EQ(printed("a\n{{ f(1) }}"),
            "refused: line 2 of the chat template: 'f' is undefined, or a function that is not "
            "supported");
  EXPECT_EQ(printed("{{ raise_exception('no\x1b[1m') }}"),
            "refused: line 1 of the chat template: the template refuses the conversation: "
            "no\\x1b[1m");
  EXPECT_THAT(printed("{{ [1] }}"), HasSubstr("use the filter tojson"));
  EXPECT_THAT(printed("{{ {'items': 1}.items }}"), HasSubstr("write ['items'] for its value"));
  EXPECT_THAT(printed("{{ 'é' | upper }}"), HasSubstr("ASCII"));
  EXPECT_THAT(printed("{{ 9223372036854775807 + 1 }}"), HasSubstr("64 bits"));
  EXPECT_THAT(printed("{% set x = {} %}{% set x.y = 1 %}"), HasSubstr("is no namespace"));
}

TEST(JinjaRun, HostileTemplatesEnd) {
  for (const char* source :
       {"{% for i in range(2147483647) %}{% endfor %}",
        "{% set ns = namespace(x='a') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}"
        "{% endfor %}",
        "{% for a in range(3000) %}{% for b in range(3000) %}{% for c in range(3000) %}"
        "{% endfor %}{% endfor %}{% endfor %}"}) {
    EXPECT_THAT(printed(source), HasSubstr("too many steps or too much memory")) << source;
  }
  EXPECT_THAT(printed("{% set ns = namespace(x=1) %}{% for i in range(200) %}{% set ns.x = "
                      "[ns.x] %}{% endfor %}"),
              HasSubstr("nested deeper"));
  EXPECT_THAT(printed("{% set ns = namespace() %}{% set ns.x = ns %}"),
              HasSubstr("a namespace can't be kept"));
  std::string deep;
  for (int i = 0; i < 100'000; ++i) {
    deep += '(';
  }
  EXPECT_THAT(printed("{{ " + deep + std::string(deep.size(), ')') + " }}"),
              HasSubstr("nested too deeply"));
  std::string sum = "{{ 1";
  std::string branches;
  for (int i = 0; i < 100'000; ++i) {
    sum += "+1";
    branches += "{% if 1 %}";
  }
  EXPECT_THAT(printed(sum + " }}"), HasSubstr("nested too deeply"));
  EXPECT_THAT(printed(branches), HasSubstr("nested too deeply"));
}

TEST(ChatTemplate, FindsAnswersByWhatAMessageAdds) {
  const ChatTemplate chat(kChatml);
  const RenderedChat found = chat.render_line(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
                       {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})",
      "messages");
  ASSERT_EQ(found.answers.size(), 2U);
  for (const auto& [i, text] : {std::pair{0, "b<|im_end|>\n"}, {1, "d<|im_end|>\n"}}) {
    const auto [begin, end] = found.answers[static_cast<std::size_t>(i)];
    EXPECT_EQ(found.text.substr(begin, end - begin), text);
  }
  EXPECT_EQ(found.answers[1].second, found.text.size());
}

TEST(ChatTemplate, RefusesConversationsWithoutAnswersAndTemplatesThatRewrite) {
  const auto refused = [](const std::string& source, const std::string& line) {
    return message_of<DataError>([&] { (void)ChatTemplate(source).render_line(line, "messages"); });
  };
  const std::string answer = R"({"role": "assistant", "content": "b"})";
  EXPECT_THAT(refused(kChatml, R"([{"role": "user", "content": "a"}])"), HasSubstr("no answer"));
  EXPECT_THAT(refused("{{ messages | length }}", "[" + answer + "]"),
              HasSubstr("writes what precedes message 1 in another way"));
  EXPECT_THAT(refused(kChatml, "{"), HasSubstr("not"));
  EXPECT_THAT(refused(kChatml, R"({"text": "a"})"), HasSubstr("no field 'messages'"));
  EXPECT_THAT(refused(kChatml, "[]"), HasSubstr("not a list of messages"));
  EXPECT_THAT(refused(kChatml, R"([{"content": "a"}])"), HasSubstr("'role'"));
  EXPECT_THAT(refused(kChatml, R"({"messages": [)" + answer + R"(], "tools": 1})"),
              HasSubstr("'tools' is not a list"));
  EXPECT_THAT(refused(kChatml, R"([{"role": "assistant", "role": "user"}])"), HasSubstr("role"));
}

TEST(ChatTemplate, IsReadFromTheFilesOfATokenizer) {
  const TempFolder temp;
  const auto config = [&](const std::string& text) {
    write_file_durably(temp.path() / "tokenizer_config.json", text);
    return ChatTemplate::open(temp.path());
  };
  EXPECT_FALSE(ChatTemplate::open(temp.path()));
  EXPECT_FALSE(config(R"({"eos_token": "x"})"));
  const ordered_json ask = ordered_json::parse(R"([{"role": "user", "content": "a"}])");
  EXPECT_EQ(config(R"({"chat_template": "{{ eos_token }}{{ bos_token }}", "eos_token": "E",
                       "bos_token": {"content": "B"}})")
                ->render(ask, {}, true),
            "EB");
  EXPECT_EQ(config(R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                         {"name": "default", "template": "d"}]})")
                ->render(ask, {}, true),
            "d");
  write_file_durably(temp.path() / "chat_template.jinja", "file");
  EXPECT_EQ(config("{}")->render(ask, {}, true), "file");
  write_file_durably(temp.path() / "other.jinja", "other");
  EXPECT_EQ(ChatTemplate::open(temp.path(), temp.path() / "other.jinja")->render(ask, {}, true),
            "other");
  EXPECT_THAT(message_of<DataError>([&] { config("[1]"); }), HasSubstr("tokenizer_config.json"));
  write_file_durably(temp.path() / "chat_template.jinja", "\n{{ x | y }}");
  EXPECT_THAT(message_of<DataError>([&] { (void)config("{}"); }),
              AllOf(HasSubstr("chat_template.jinja"), HasSubstr("line 2"), HasSubstr("'y'")));
}

}  // namespace
}  // namespace trireme
