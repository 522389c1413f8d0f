#include "src/app/site/completion_command.h"

#include <array>
#include <cstdio>
#include <cstdlib>
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

  // Returns what the shell prints when it runs the script.
  std::string printed(const std::string& shell, const std::string& script) const {
    std::ofstream(folder.path() / "script") << script;
    const std::string command = shell + " " + (folder.path() / "script").string();
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string text;
    std::array<char, 256> part{};
    while (std::fgets(part.data(), part.size(), pipe) != nullptr) {
      text += part.data();
    }
    ::pclose(pipe);
    return text;
  }

  // Returns the words that bash would offer for the last word.
  std::string offers(const std::string& words) const {
    return printed("bash", bash_completion(app) + "COMP_WORDS=(" + words +
                               ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_prog\n"
                               "echo ${COMPREPLY[@]}\n");
  }
  // Returns what fish would offer for the end of a line, with descriptions.
  std::string fish_offers(const std::string& line) const {
    return printed("fish --no-config", fish_completion(app) + "complete -C '" + line + "'\n");
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

TEST_F(Completion, FishScriptHasWhatMayFollow) {
  const std::string script = fish_completion(app);
  EXPECT_THAT(script, HasSubstr("complete -c prog -n '__prog_at \\'\\'' -f -a data "
                                "-d 'Look after $(data): it\\'s `ours`'\n"));
  EXPECT_THAT(script, HasSubstr("-n '__prog_at \\' data pack\\'' -l out -d 'where it goes'\n"));
  EXPECT_THAT(script, HasSubstr("-n '__prog_at \\' data pack\\'' -s o -d 'where it goes'\n"));
  EXPECT_THAT(script, Not(HasSubstr("INPUT")));
}

TEST_F(Completion, FishOffersWhatMayFollow) {
  if (std::system("command -v fish >/dev/null") != 0) {
    GTEST_SKIP() << "needs fish: apt-get install fish";
  }
  EXPECT_EQ(fish_offers("prog da"), "data\tLook after $(data): it's `ours`\n");
  EXPECT_EQ(fish_offers("prog data "), "pack\tPack text\n");
  EXPECT_EQ(fish_offers("prog data pack --o"), "--out\twhere it goes\n");
  EXPECT_EQ(fish_offers("prog data --o"), "");
  EXPECT_EQ(fish_offers("prog launch -- da"), "data\tLook after $(data): it's `ours`\n");
}

}  // namespace
}  // namespace trireme
