#include "src/app/site/completion_command.h"

#include <array>
#include <cstdio>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The program has nested commands, and words that a shell must not interpret.
class Completion : public ::testing::Test {
 protected:
  Completion() : app("does things", "prog") {
    CommandLine& data = app.add_command("data", "Look after $(data): it's `ours`");
    CommandLine& pack = data.add_command("pack", "Pack text");
    pack.add_option("-o,--out", out, "where it goes");
    pack.add_option("INPUT", out, "files");
    app.add_command("launch", "Start");
  }

  // Returns the words that bash would offer for the last word.
  std::string offers(const std::string& words) {
    std::ofstream(folder.path() / "script")
        << bash_completion(app) << "COMP_WORDS=(" << words
        << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_prog\necho ${COMPREPLY[@]}\n";
    const std::string command = "bash " + (folder.path() / "script").string();
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 256> part{};
    while (std::fgets(part.data(), part.size(), pipe) != nullptr) {
      text += part.data();
    }
    ::pclose(pipe);
    return text;
  }

  CommandLine app;
  std::string out;
  TempFolder folder;
};

TEST_F(Completion, OffersWhatMayFollow) {
  EXPECT_EQ(offers("prog ''"), "data launch -h --help\n");
  EXPECT_EQ(offers("prog da"), "data\n");
  EXPECT_EQ(offers("prog data ''"), "pack -h --help\n");
  EXPECT_EQ(offers("prog data pack --"), "--help --out\n");
  EXPECT_EQ(offers("prog data pack -o file -"), "-h --help -o --out\n");
  EXPECT_EQ(offers("prog data pack x"), "\n");  // the shell then offers files
  EXPECT_EQ(offers("prog launch -- da"), "data\n");
  EXPECT_EQ(offers("prog pack ''"), "data launch -h --help\n");
}

TEST_F(Completion, ZshSaysWhatCommandsDo) {
  const std::string script = zsh_completion(app);
  EXPECT_THAT(script, testing::StartsWith("#compdef prog\n"));
  EXPECT_THAT(script, HasSubstr("'data:Look after $(data)\\: it'\\''s `ours`'"));
  EXPECT_THAT(script, HasSubstr("'--out:where it goes'"));
  EXPECT_THAT(script, Not(HasSubstr("INPUT")));
}

}  // namespace
}  // namespace trireme
