#include "src/app/model/chat_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::Field;

class ChatHistoryTest : public testing::Test {
 protected:
  ChatHistory history(std::int64_t room, const std::string& system = "") {
    return {[this](const std::vector<ChatTurn>& turns) { return marks_.text(turns); }, *bytes_,
            room, system};
  }
  static auto texts(const std::vector<std::string>& expected) {
    std::vector<testing::Matcher<ChatTurn>> each;
    for (const std::string& text : expected) {
      each.emplace_back(Field(&ChatTurn::text, text));
    }
    return testing::ElementsAreArray(each);
  }
  std::string text_of(const ChatPrompt& prompt) const { return bytes_->decode(prompt.ids); }

  ChatMarks marks_;
  std::unique_ptr<Tokenizer> bytes_ = make_tokenizer("bytes");
};

TEST_F(ChatHistoryTest, MarksSayWhoSpeaks) {
  ChatHistory chat = history(1000, "Be brief.");
  chat.add("user", "Hi");
  chat.add("assistant", "Hello");
  chat.add("user", "Why?");
  EXPECT_EQ(text_of(chat.prompt()),
            "Be brief.\nUser: Hi\nAssistant: Hello\nUser: Why?\nAssistant:");
  EXPECT_EQ(marks_.stop(), "\nUser:");
  marks_ = {"<u>", "<a>", "</s>"};
  EXPECT_EQ(text_of(chat.prompt()), "Be brief.</s><u>Hi</s><a>Hello</s><u>Why?</s><a>");
}

TEST_F(ChatHistoryTest, TheOldestExchangesAreDropped) {
  marks_ = {"u", "a", "."};
  ChatHistory chat = history(13, "S");
  for (const char* text : {"1", "2"}) {
    chat.add("user", text);
    chat.add("assistant", text);
  }
  chat.add("user", "3");
  // "S." "u1." "a1." "u2." "a2." "u3." "a": 18 tokens, 12 without the first exchange.
  const ChatPrompt prompt = chat.prompt();
  EXPECT_EQ(prompt.dropped, 2);
  EXPECT_EQ(prompt.cut_tokens, 0);
  EXPECT_EQ(text_of(prompt), "S.u2.a2.u3.a");
  EXPECT_THAT(chat.turns(), texts({"S", "2", "2", "3"}));
  EXPECT_EQ(chat.prompt().dropped, 0);
  chat.clear();
  EXPECT_THAT(chat.turns(), texts({"S"}));
}

TEST_F(ChatHistoryTest, AMessageThatIsTooLongLosesItsBeginning) {
  marks_ = {"u", "a", "."};
  ChatHistory chat = history(4);
  chat.add("user", "1");
  chat.add("assistant", "1");
  chat.add("user", "abcdef");
  const ChatPrompt prompt = chat.prompt();
  EXPECT_EQ(prompt.dropped, 2);
  EXPECT_EQ(prompt.cut_tokens, 5);
  EXPECT_EQ(text_of(prompt), "ef.a");
}

TEST_F(ChatHistoryTest, AnEmptyPromptBeginsADocument) {
  ChatHistory chat([](const std::vector<ChatTurn>&) { return ""; }, *bytes_, 4, "");
  chat.add("user", "x");
  EXPECT_THAT(chat.prompt().ids, ElementsAre(bytes_->end_of_document()));
}

}  // namespace
}  // namespace trireme
