#include "io/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

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
        {"{{ [] | map('pprint') }}", "the filter 'pprint'"},
        {"{{ [] | select('sameas', 1) }}", "the test 'sameas'"},
        {"{{ [] | rejectattr('a', 'sameas', 1) }}", "the test 'sameas'"},
        {"{{ 'a'.encode() }}", "the method 'encode'"},
        {"{% for i in [1] %}{{ loop.changed(i) }}{% endfor %}", "the method 'changed'"},
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
  EXPECT_THAT(printed("{% for i in [1] %}{{ loop['cycle']('a', 'b') }}{% endfor %}"),
              HasSubstr("the function 'cycle' is not supported"));
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

// Returns a template that sets s to a text of 2^times letters x.
std::string with_long_text(int times) {
  return "{% set ns = namespace(s='x') %}{% for i in range(" + std::to_string(times) +
         ") %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}{% set s = ns.s %}";
}

// Returns what `one` makes of the numbers below `count`, with commas.
template <class One>
std::string listed(int count, One one) {
  std::string all;
  for (int i = 0; i < count; ++i) {
    all += (i == 0 ? "" : ", ") + one(std::to_string(i));
  }
  return all;
}

TEST(JinjaRun, StopsWhileALongTextIsMade) {
  const std::string list =
      "{% set l = [" + listed(2000, [](const std::string&) { return std::string("s"); }) + "] %}";
  for (const char* use :
       {"{{ l | tojson | length }}", "{{ l | join | length }}", "{{ ''.join(l) | length }}",
        "{{ [1, 2] | join(s) }}{{ [l] | tojson }}"}) {
    EXPECT_THAT(printed(with_long_text(20) + list + use),
                HasSubstr("too many steps or too much memory"))
        << use;
  }
  rusage usage{};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  EXPECT_LT(usage.ru_maxrss, 1 << 20);  // KiB; the texts would be of 2 GB
}

TEST(JinjaRun, CountsEachVisitOfAValueThatManyShare) {
  const std::string nested =
      "{% set a = namespace(l=[1]) %}{% set b = namespace(l=[1]) %}{% for i in range(40) %}"
      "{% set a.l = [a.l, a.l] %}{% set b.l = [b.l, b.l] %}{% endfor %}";
  for (const char* use :
       {"{{ a.l == b.l }}", "{{ a.l != b.l }}", "{{ a.l in [b.l] }}", "{{ a.l is eq b.l }}",
        "{{ {'k': a.l} == {'k': b.l} }}", "{{ a.l | tojson | length }}"}) {
    EXPECT_THAT(printed(nested + use), HasSubstr("too many steps or too much memory")) << use;
  }
}

TEST(JinjaRun, TakesStepsAsLongAsTheWorkIs) {
  const auto repeated = [](const std::string& what) {
    return "{% for i in range(50000) %}" + what + "{% endfor %}";
  };
  const auto pair = [](const std::string& i) { return "'a" + i + "': 1"; };
  const auto named = [](const std::string& i) { return "a" + i + "=1"; };
  const std::string numbers = "{% set l = range(4000) | list %}{% set m = range(4000) | list %}";
  std::string variables;
  for (int i = 0; i < 20'000; ++i) {
    variables += "{% set a" + std::to_string(i) + " = 1 %}";
  }
  for (const std::string& source :
       {"{% set d = {" + listed(20'000, pair) + "} %}" + repeated("{% set t = d['a19999'] %}"),
        "{% set d = {" + listed(20'000, pair) + "} %}" + repeated("{% set t = 'b' in d %}"),
        "{% set d = {" + listed(20'000, pair) + "} %}" + repeated("{% set t = d.get('b') %}"),
        "{% set n = namespace(" + listed(20'000, named) + ") %}" + repeated("{% set n.b = 1 %}"),
        variables + repeated("{% set t = missing %}"), numbers + repeated("{% set t = -1 in l %}"),
        numbers + repeated("{% set t = l == m %}"),
        with_long_text(20) + repeated("{% set t = s | length %}"),
        with_long_text(20) + repeated("{% set t = s[-1] %}"),
        with_long_text(20) + "{% set r = s ~ '' %}" + repeated("{% set t = s == r %}"),
        with_long_text(20) + "{% set r = s ~ '' %}" + repeated("{% set t = s < r %}"),
        with_long_text(21) + "{% set m = s[:1000000] ~ 'y' %}" + repeated("{% set t = m in s %}"),
        with_long_text(19) + "{% set r = s ~ '' %}" + repeated("{% set t = s.strip(r) %}")}) {
    EXPECT_THAT(printed(source), HasSubstr("too many steps or too much memory"))
        << source.substr(source.size() - 80);
  }
  EXPECT_THAT(printed("{{ -9223372036854775807 - 1 }} {{ (-9223372036854775807 - 1) | abs }}"),
              HasSubstr("64 bits"));
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

// Python has whole numbers of any size, and JSON floats that a parser tells from them by their
// form.
TEST(ChatTemplate, RefusesWholeNumbersThat64BitsDoNotHold) {
  const ChatTemplate chat("{% for m in messages %}{{ m.content }}{{ m.id }} {% endfor %}");
  const auto rendered = [&](const std::string& id, const std::string& more = "") {
    return chat
        .render_line(
            R"({"messages": [{"role": "assistant", "content": "", "id": )" + id + "}]" + more + "}",
            "messages")
        .text;
  };
  EXPECT_EQ(rendered("9223372036854775807"), "9223372036854775807 ");
  EXPECT_EQ(rendered("-9223372036854775808"), "-9223372036854775808 ");
  EXPECT_EQ(rendered("12345678901234567890123.0"), "1.2345678901234568e+22 ");
  EXPECT_EQ(rendered("1", R"(, "id": 12345678901234567890123)"), "1 ");
  for (const std::string id :
       {"9223372036854775808", "18446744073709551616", "-9223372036854775809",
        "12345678901234567890123", "[{\"a\": -12345678901234567890123}]"}) {
    const std::string digits = id.substr(id.find_first_of("-123456789"), 15);
    EXPECT_THAT(message_of<DataError>([&] { rendered(id); }), HasSubstr("the number " + digits));
    EXPECT_THAT(message_of<DataError>([&] { rendered("1", R"(, "tools": [)" + id + "]"); }),
                HasSubstr("the number " + digits));
  }
}

TEST(ChatTemplate, RefusesConversationsThatTakeTooLong) {
  std::string many = R"({"role": "user", "content": "a"})";
  for (int i = 0; i < 3000; ++i) {
    many += R"(, {"role": "assistant", "content": "b"})";
  }
  const auto refused = [](const std::string& source, const std::string& line) {
    return message_of<DataError>([&] { (void)ChatTemplate(source).render_line(line, "messages"); });
  };
  EXPECT_THAT(refused(kChatml, "[" + many + "]"), HasSubstr("too long to find each answer"));
  const ChatTemplate marked(
      "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}");
  EXPECT_EQ(marked.render_line("[" + many + "]", "messages").answers.size(), 3001U);
  const std::string keys = listed(5000, [](const std::string& i) { return "\"" + i + "\": 1"; });
  EXPECT_THAT(refused(kChatml, R"([{"role": "assistant", "content": {)" + keys + "}}]"),
              HasSubstr("an object has 5000 keys, more than 4096"));
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
  write_file_durably(temp.path() / "other.jinja", "");
  EXPECT_THAT(message_of<DataError>(
                  [&] { (void)ChatTemplate::open(temp.path(), temp.path() / "other.jinja"); }),
              HasSubstr("other.jinja is empty"));
  EXPECT_THAT(message_of<DataError>([&] { config("[1]"); }), HasSubstr("tokenizer_config.json"));
  write_file_durably(temp.path() / "chat_template.jinja", "\n{{ x | y }}");
  EXPECT_THAT(message_of<DataError>([&] { (void)config("{}"); }),
              AllOf(HasSubstr("chat_template.jinja"), HasSubstr("line 2"), HasSubstr("'y'")));
}

}  // namespace
}  // namespace trireme
