#include "slurm/render/shell_words.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/command.h"
#include "src/base/error.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

// Returns the words as bash parses them, each followed by a separate line.
std::string bash_reads(const std::vector<std::string>& texts) {
  const CommandResult result = run_command(
      {"bash", "-c", "words=(" + shell_words(texts) + "); printf '%s\\n|\\n' \"${words[@]}\""},
      std::chrono::seconds(60));
  EXPECT_TRUE(result.good()) << result.complaint("bash");
  return result.output;
}

std::string expected(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    all += text + "\n|\n";
  }
  return all;
}

TEST(ShellWords, PlainStaysPlain) {
  EXPECT_EQ(shell_word("optimizer.lr=1e-3"), "optimizer.lr=1e-3");
  EXPECT_EQ(shell_word("/a/b_c-d.yaml"), "/a/b_c-d.yaml");
}

TEST(ShellWords, BashReadsTheSameBytes) {
  const std::vector<std::string> hostile = {"",
                                            " ",
                                            "a b",
                                            "it's",
                                            "$(touch /tmp/x)",
                                            "`id`",
                                            "${HOME}",
                                            "\"; rm -rf x; \"",
                                            "a\nb\n",
                                            "\t\r\x01\x7f",
                                            "back\\slash\\",
                                            "!history",
                                            "~",
                                            "~root",
                                            "=x",
                                            "[0]=x",
                                            "*",
                                            "{a,b}",
                                            "-n",
                                            "#no comment",
                                            "a&b|c;d<e>f",
                                            "caf\xc3\xa9",
                                            "\xff\xfe",
                                            "\x01"
                                            "23",
                                            "'",
                                            "\\'",
                                            "$'x'"};
  EXPECT_EQ(bash_reads(hostile), expected(hostile));
}

TEST(ShellWords, AnyBytes) {
  std::mt19937 random(7);
  std::vector<std::string> texts;
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (std::size_t length = random() % 12; length > 0; --length) {
      text += static_cast<char>(1 + random() % 255);
    }
    texts.push_back(text);
  }
  EXPECT_EQ(bash_reads(texts), expected(texts));
}

TEST(ShellWords, CommentsStayOnTheirLine) {
  EXPECT_EQ(shell_comment("a 'b' $(c)"), "a 'b' $(c)");
  EXPECT_EQ(shell_comment("a\nrm -rf x\r").find_first_of("\r\n"), std::string::npos);
}

TEST(ShellWords, SbatchValues) {
  EXPECT_EQ(sbatch_value("x", "--constraint=[a*2]%4"), "--constraint=[a*2]%4");
  for (const char* text :
       {"a b", "a\n#SBATCH --uid=0", "a;b", "$(x)", "'", "\"", "a\\", "a#b", "<"}) {
    EXPECT_THAT(message_of<ConfigError>([&] { sbatch_value("slurm.account", text); }),
                HasSubstr("slurm.account"))
        << text;
  }
}

TEST(ShellWords, SbatchNames) {
  EXPECT_EQ(sbatch_name("first run"), "first_run");
  EXPECT_EQ(sbatch_name("--uid=0"), "_--uid_0");
  EXPECT_EQ(sbatch_name("a\n#SBATCH -x"), "a__SBATCH_-x");
  EXPECT_EQ(sbatch_name(""), "_");
  EXPECT_EQ(sbatch_name(std::string(1000, 'a')).size(), 64U);
}

}  // namespace
}  // namespace trireme
