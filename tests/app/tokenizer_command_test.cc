// `trireme tokenizer`: options and their refusals, and that encode and decode undo each other. The
// algorithm itself is tested in tests/io/tokens.
#include "src/app/data/tokenizer_command.h"

#include <fstream>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class TokenizerCommand : public testing::Test {
 protected:
  TokenizerCommand() {
    fs::create_directory(path("in"));
    write("in/a.txt", "low low low low lower lower lowest\n");
    write("in/b.txt", "low lower newest newest newest newest\n");
  }
  static CommandRun tokenizer(Words words) {
    words.insert(words.begin(), "tokenizer");
    return run_command_line([](CommandLine& app, int&) { add_tokenizer_command(app); }, words);
  }
  CommandRun train(const Words& more = {}, const std::string& vocab = "266") const {
    Words words = {"train", path("in"), "--out", path("made"), "--vocab", vocab};
    words.insert(words.end(), more.begin(), more.end());
    return tokenizer(words);
  }
  CommandRun with_made(const std::string& command, const Words& more) const {
    Words words = {command, path("made")};
    words.insert(words.end(), more.begin(), more.end());
    return tokenizer(words);
  }
  std::string encoded(const Words& more) const {
    const CommandRun run = with_made("encode", more);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }

  TempFolder folder_;
};

TEST_F(TokenizerCommand, TrainWritesATokenizerAndSaysWhatItIs) {
  const CommandRun run = train();
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("read        2 files, 73 B of text, "),
                             HasSubstr("trained     266 ids, 9 merges; "),
                             HasSubstr("\nArabic      no words\n"),
                             HasSubstr(" tokens per word (13 words)\n"),
                             HasSubstr("written to  " + path("made") + "\n"),
                             Not(HasSubstr("the vocabulary stays below"))));
  const json config = json::parse(read_file(path("made/tokenizer_config.json")));
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
  const json info = json::parse(with_made("info", {"--json"}).out);
  EXPECT_EQ(info["schema"], 1);
  EXPECT_EQ(info["vocab"], 266);
  EXPECT_EQ(info["merges"], 9);
  ASSERT_EQ(info["added"].size(), 1U);
  EXPECT_EQ(info["added"][0]["content"], "<|endoftext|>");
  EXPECT_EQ(info["added"][0]["special"], true);
  EXPECT_EQ(info["end_of_document"], info["added"][0]["id"]);
  EXPECT_THAT(run.out, HasSubstr(info["digest"].get<std::string>()));
}

TEST_F(TokenizerCommand, AnEmptyTextIsATextAndNotStandardInput) {
  train();
  EXPECT_EQ(encoded({"--text", "", "--count", "--json"}).substr(0, 1), "{");
  EXPECT_EQ(json::parse(encoded({"--text", "", "--count", "--json"}))["bytes"], 0);
  EXPECT_EQ(encoded({"--text", ""}), "\n");
  const CommandRun both = with_made("encode", {path("in/a.txt"), "--text", "low"});
  EXPECT_EQ(both.code, 2);
  EXPECT_THAT(both.err, HasSubstr("a file and a text"));
}

TEST_F(TokenizerCommand, TrainPrintsJson) {
  const json found = json::parse(train({"--json", "--threads", "2"}).out);
  EXPECT_EQ(found["schema"], 1);
  EXPECT_EQ(found["vocab"], 266);
  EXPECT_EQ(found["merges"], 9);
  EXPECT_EQ(found["bytes"], 73);
  EXPECT_EQ(found["threads"], 2);
  EXPECT_EQ(found["arabic"]["words"], 0);
  EXPECT_TRUE(found["arabic"]["fertility"].is_null());
  EXPECT_EQ(found["latin"]["words"], 13);
  EXPECT_NEAR(found["latin"]["fertility"].get<double>(),
              found["latin"]["tokens"].get<double>() / 13, 1e-12);
  EXPECT_GE(found["tokens"], found["latin"]["tokens"]);
}

TEST_F(TokenizerCommand, AVocabularyThatTheTextCannotFillIsSmaller) {
  const CommandRun run = train({}, "5000");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("no other pair occurs 2 times: the vocabulary stays below 5000"));
  fs::remove_all(path("made"));
  const std::int64_t twice = json::parse(train({"--json"}, "5000").out)["vocab"];
  fs::remove_all(path("made"));
  const std::int64_t four =
      json::parse(train({"--json", "--min-frequency", "4"}, "5000").out)["vocab"];
  EXPECT_LT(four, twice);
  EXPECT_GT(four, 257);
}

TEST_F(TokenizerCommand, SpecialTokensAreIdsOfTheirOwn) {
  EXPECT_EQ(train({"--special", "<a>", "--special", "<b>", "--end-of-document", "<end>"}).code, 0);
  const json info = json::parse(with_made("info", {"--json"}).out);
  ASSERT_EQ(info["added"].size(), 3U);
  EXPECT_EQ(info["added"][0]["content"], "<end>");
  EXPECT_EQ(info["added"][2]["content"], "<b>");
  EXPECT_EQ(info["merges"], 266 - 256 - 3);
  const std::string id = std::to_string(info["added"][1]["id"].get<int>());
  EXPECT_EQ(encoded({"--text", "<a>"}), id + "\n");
  EXPECT_EQ(with_made("decode", {"--ids", id}).out, "") << "special tokens are left out";
  EXPECT_THAT(with_made("decode", {"--ids", id, "--special"}).out, testing::StartsWith("<a>"));
}

TEST_F(TokenizerCommand, TrainRefusesOptionsBeforeItReads) {
  fs::remove_all(path("in"));  // and says so last
  const std::string long_token(1001, 'x');
  for (const auto& [more, why] : std::vector<std::pair<Words, std::string>>{
           {{"--pattern", "gpt5"}, "unknown pattern 'gpt5': expected "},
           {{"--min-frequency", "0"}, "--min-frequency 0 must be at least 1"},
           {{"--threads", "-1"}, "--threads -1 from 0 to 1024"},
           {{"--threads", "1025"}, "--threads 1025 from 0 to 1024"},
           {{"--special", "<a>", "--special", "<a>"}, "the special token <a> is given twice"},
           {{"--special", "<|endoftext|>"}, "is given twice"},
           {{"--special", long_token}, "1 to 1000 bytes of UTF-8, and one here has 1001"},
           {{"--special", "a\xFF"}, "bytes of UTF-8, and one here has 2"}}) {
    const CommandRun run = train(more);
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage)) << why;
    EXPECT_THAT(run.err, HasSubstr(why));
  }
  EXPECT_EQ(train({"--special", long_token.substr(1)}).code, static_cast<int>(ExitCode::not_found));
  EXPECT_FALSE(fs::exists(path("made")));
}

TEST_F(TokenizerCommand, ATokenizerIsNeverReplaced) {
  ASSERT_EQ(train().code, 0);
  const std::string before = read_file(path("made/tokenizer.json"));
  const CommandRun again = train({}, "280");
  EXPECT_EQ(again.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(again.err, HasSubstr("has a tokenizer.json: choose another folder"));
  EXPECT_EQ(read_file(path("made/tokenizer.json")), before);
}

TEST_F(TokenizerCommand, WithoutTextThereIsNothingToTrainOn) {
  write("in/a.txt", "");
  write("in/b.txt", "");
  const CommandRun run = train();
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(run.err, HasSubstr("the inputs contain no text"));
}

TEST_F(TokenizerCommand, FilesAreLeftOutAndFieldsChosen) {
  write("in/c.jsonl", "{\"body\": \"zzzz zzzz\", \"text\": \"yyyy\"}\n");
  const json whole = json::parse(train({"--json", "--field", "body"}).out);
  EXPECT_EQ(whole["bytes"], 73 + 9);
  fs::remove_all(path("made"));
  EXPECT_EQ(json::parse(train({"--json"}).out)["bytes"], 73 + 4);
  fs::remove_all(path("made"));
  EXPECT_EQ(json::parse(train({"--json", "--exclude", "*.jsonl", "--exclude", "b*"}).out)["bytes"],
            35);
}

TEST_F(TokenizerCommand, DecodeUndoesEncode) {
  ASSERT_EQ(train().code, 0);
  const std::string text = "the newest low \xD8\xB3 \t\n lower";
  const std::string ids = encoded({"--text", text});
  EXPECT_EQ(with_made("decode", {"--ids", ids}).out, text);
  write("text", text);
  EXPECT_EQ(encoded({path("text")}), ids);
  std::string commas = ids;
  std::replace(commas.begin(), commas.end(), ' ', ',');
  EXPECT_EQ(with_made("decode", {"--ids", "\t" + commas}).out, text);
}

TEST_F(TokenizerCommand, LinesAndPartsAreEncodedByThemselves) {
  ASSERT_EQ(train().code, 0);
  const std::string low = encoded({"--text", "low"});
  const std::string newest = encoded({"--text", "newest"});
  write("lines", "low\nnewest\n\nlow");
  EXPECT_EQ(encoded({path("lines"), "--lines"}), low + newest + "\n" + low);
  write("parts", std::string("low\0newest\0", 11));
  EXPECT_EQ(encoded({path("parts"), "--null"}), low + newest);
  write("ids", low + newest);
  EXPECT_EQ(with_made("decode", {path("ids"), "--lines"}).out, "low\nnewest\n");
  EXPECT_EQ(encoded({path("lines"), "--lines", "--count"}).find("4 texts, 12 bytes, "), 0U);
  const json count = json::parse(encoded({path("lines"), "--lines", "--count", "--json"}));
  EXPECT_EQ(count["texts"], 4);
  EXPECT_EQ(count["bytes"], 3 + 6 + 0 + 3);
}

TEST_F(TokenizerCommand, TokensAreShownInsteadOfIds) {
  ASSERT_EQ(train().code, 0);
  const json one = json::parse(encoded({"--text", "low", "--json"}));
  EXPECT_EQ(fmt::format("{}\n", fmt::join(one["ids"].get<std::vector<int>>(), " ")),
            encoded({"--text", "low"}));
  EXPECT_EQ(one["ids"].size(), one["tokens"].size());
  EXPECT_EQ(encoded({"--text", "low", "--tokens"}), one["tokens"][0].get<std::string>() + "\n");
}

TEST_F(TokenizerCommand, WhatIsNoIdIsNamed) {
  ASSERT_EQ(train().code, 0);
  for (const auto& [ids, word] : std::vector<std::pair<std::string, std::string>>{
           {"5 x7 9", "x7"}, {"1.5", "1.5"}, {"99999999999", "99999999999"}, {"3;4", "3;4"}}) {
    const CommandRun run = with_made("decode", {"--ids", ids});
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::bad_data)) << ids;
    EXPECT_THAT(run.err, HasSubstr("'" + word + "' is not a token id"));
  }
  EXPECT_NE(with_made("decode", {"--ids", "266"}).code, 0) << "ids end before 266";
  EXPECT_NE(with_made("decode", {"--ids", "-1"}).code, 0);
}

TEST_F(TokenizerCommand, InfoIsForPeopleOrPrograms) {
  ASSERT_EQ(train().code, 0);
  const CommandRun text = with_made("info", {});
  EXPECT_THAT(text.out, AllOf(HasSubstr("vocabulary       266 ids, 9 merges\n"),
                              HasSubstr("<|endoftext|>\nadded tokens     1\ndigest           ")));
  EXPECT_NE(with_made("info", {"--end-of-document", "<other>"}).code, 0);
  EXPECT_EQ(tokenizer({"info", path("absent")}).code, static_cast<int>(ExitCode::not_found));
  EXPECT_EQ(tokenizer({}).code, static_cast<int>(ExitCode::usage));
}

TEST_F(TokenizerCommand, NamesOfFoldersCannotControlATerminal) {
  const CommandRun run =
      tokenizer({"train", path("in"), "--out", path("m\x1b[31m"), "--vocab", "266"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("m\\x1b[31m\n"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace trireme
