#include "src/app/data/data_command.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "mpi/self_communicator.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"
#include "tests/support/without_policy.h"
#include "tests/support/words_of.h"

namespace trireme {
namespace {
namespace fs = std::filesystem;

using nlohmann::json;
using testing::HasSubstr;

class DataCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_ / "in");
    for (int i = 0; i < 40; ++i) {
      std::ofstream(folder_ / fmt::format("in/{}.txt", i)) << "document " << i << "\n";
    }
  }

  // Runs `trireme data ...` in this process, keeps its output, and returns the exit code.
  int run(const std::string& arguments) { return run_words(words_of(arguments)); }
  int run_words(std::vector<std::string> words) {
    words.insert(words.begin(), "data");
    CommandLine app("", "trireme");
    int exit_code = 0;
    SelfCommunicator self;
    add_data_command(
        app, [&]() -> Communicator& { return self; }, without_policy(), exit_code);
    testing::internal::CaptureStdout();
    try {
      app.parse(words);
    } catch (...) {
      printed_ = testing::internal::GetCapturedStdout();
      throw;
    }
    std::fflush(stdout);
    printed_ = testing::internal::GetCapturedStdout();
    return exit_code;
  }
  std::string in(const std::string& name) const { return (folder_ / name).string(); }

  TempFolder temp_;
  fs::path folder_ = temp_.path();
  std::string printed_;
};

TEST_F(DataCommandTest, ListsWhatIsBelowAFolder) {
  run("pack " + in("in") + " --out " + in("sets/a") + " --validation-fraction 0.3");
  run("pack " + in("in") + " --out " + in("sets/b/damaged"));
  fs::resize_file(folder_ / "sets/b/damaged/shards/00000.h5", 100);
  fs::create_directories(folder_ / "sets/b/unfinished/.pack");
  fs::create_directories(folder_ / "sets/b/unfinished/shards");
  fs::create_directories(folder_ / "sets/checkpoint");
  std::ofstream(folder_ / "sets/checkpoint/manifest.json") << "{}";
  fs::create_directory_symlink(folder_ / "sets", folder_ / "sets/loop");

  EXPECT_EQ(run("ls " + in("sets") + " --json"), 0);
  const json list = json::parse(printed_)["datasets"];
  ASSERT_EQ(list.size(), 4);
  EXPECT_EQ(list[0]["folder"], in("sets/a/train"));
  EXPECT_EQ(list[0]["tokenizer"], "bytes");
  EXPECT_EQ(list[0]["documents"].get<int>() + list[1]["documents"].get<int>(), 40);
  EXPECT_EQ(list[2]["folder"], in("sets/b/damaged"));
  EXPECT_THAT(list[2]["problem"].get<std::string>(), HasSubstr("truncated"));
  EXPECT_THAT(list[3]["problem"].get<std::string>(), HasSubstr("unfinished"));

  EXPECT_EQ(run("ls " + in("sets")), 0);
  EXPECT_THAT(printed_, testing::AllOf(HasSubstr("tokenizer"), HasSubstr(in("sets/a/validation")),
                                       HasSubstr("INVALID: unfinished")));
  EXPECT_EQ(run("ls " + in("sets/a/train")), 0);
  EXPECT_THROW(run("ls " + in("in")), NotFound);
  EXPECT_THROW(run("ls " + in("absent")), NotFound);
}

TEST_F(DataCommandTest, NamesOfFoldersCannotControlATerminal) {
  const std::string name = "sets/c\x1b[31m\nx";
  const std::string shown = "sets/c\\x1b[31m\\nx";
  const auto is_printable = [](const std::string& text) {
    return text.find('\x1b') == std::string::npos && text.find("\nx") == std::string::npos;
  };
  const std::string out = in(name);
  run_words({"pack", in("in"), "--out", out});
  EXPECT_THAT(printed_, HasSubstr(shown));
  EXPECT_TRUE(is_printable(printed_)) << printed_;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"ls", in("sets")}, {"verify", out}, {"stage", out, out + "2"}}) {
    run_words(words);
    EXPECT_THAT(printed_, HasSubstr(shown));
    EXPECT_TRUE(is_printable(printed_)) << printed_;
  }
  fs::resize_file(fs::path(out) / "shards/00000.h5", 100);
  run("ls " + in("sets"));
  EXPECT_THAT(printed_, HasSubstr("INVALID"));
  EXPECT_TRUE(is_printable(printed_)) << printed_;
}

TEST_F(DataCommandTest, ListsFoldersThatMayNotBeRead) {
  run("pack " + in("in") + " --out " + in("sets/a"));
  fs::create_directories(folder_ / "sets/secret");
  forbid_reading(folder_, folder_ / "sets/secret");
  const Unprivileged user;
  if (!user.bound()) {
    GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
  }
  EXPECT_EQ(run("ls " + in("sets") + " --json"), 0);
  const json list = json::parse(printed_)["datasets"];
  ASSERT_EQ(list.size(), 2);
  EXPECT_EQ(list[1]["folder"], in("sets/secret"));
  EXPECT_THAT(list[1]["problem"].get<std::string>(), HasSubstr("Permission denied"));
}

TEST_F(DataCommandTest, WhatPackSkipsIsCountedOnce) {
  fs::create_symlink("0.txt", folder_ / "in/link.txt");
  std::ofstream(folder_ / "in/empty.txt").close();
  run("pack " + in("in") + " --out " + in("sets/a") + " --validation-fraction 0.3");
  EXPECT_THAT(printed_, HasSubstr("  skipped 1 symbolic link or special file (name"));
  EXPECT_THAT(printed_, HasSubstr("  skipped 1 empty document\n"));
  EXPECT_EQ(printed_.find("symbolic link"), printed_.rfind("symbolic link")) << printed_;
}

TEST_F(DataCommandTest, PackInfoVerifyStage) {
  EXPECT_EQ(run("pack " + in("in") + " --out " + in("out") + " --validation-fraction 0.3 --json"),
            0);
  const json packed = json::parse(printed_);
  EXPECT_EQ(packed["datasets"].size(), 2);
  EXPECT_EQ(
      packed["datasets"][0]["documents"].get<int>() + packed["datasets"][1]["documents"].get<int>(),
      40);

  EXPECT_EQ(run("info " + in("out/train") + " --json"), 0);
  const json info = json::parse(printed_);
  EXPECT_EQ(info["digest"], packed["datasets"][0]["digest"]);
  EXPECT_EQ(info["vocab"], 257);
  EXPECT_GT(info["unigram_entropy_nats"].get<double>(), 1);
  EXPECT_EQ(run("info " + in("out/train")), 0);
  EXPECT_THAT(printed_, HasSubstr("unigram entropy"));

  EXPECT_EQ(run("stage " + in("out/train") + " " + in("local")), 0);
  EXPECT_EQ(run("verify " + in("local") + " --json"), 0);
  EXPECT_TRUE(json::parse(printed_)["valid"].get<bool>());
}

TEST_F(DataCommandTest, DamageEndsWith65AndIsNamed) {
  run("pack " + in("in") + " -o " + in("out"));
  const fs::path shard = folder_ / "out/shards/00000.h5";
  File::open_to_update(shard).write_at(4100, "!", 1);
  EXPECT_EQ(run("verify " + in("out")), 65);
  EXPECT_THAT(printed_, testing::AllOf(HasSubstr("00000.h5: block 0"), HasSubstr("do not train")));
  EXPECT_EQ(run("verify --json " + in("out")), 65);
  EXPECT_EQ(json::parse(printed_)["damage"].size(), 1);
  EXPECT_THROW(run("info " + in("out")), DataError);
}

TEST_F(DataCommandTest, AnUnreadableShardIsRefusedNotDamaged) {
  run("pack " + in("in") + " -o " + in("out"));
  forbid_reading(folder_, folder_ / "out/shards/00000.h5");
  const Unprivileged nobody;
  if (!nobody.bound()) {
    GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
  }
  EXPECT_THAT(message_of<PolicyError>([&] { run("verify " + in("out")); }),
              HasSubstr("shards/00000.h5"));
  EXPECT_THROW(run("info " + in("out")), PolicyError);
}

TEST_F(DataCommandTest, ErrorsHaveTheClassesOfTheExitCodes) {
  const auto code = [&](const std::string& arguments) {
    try {
      run(arguments);
    } catch (const Error& error) {
      return error.exit_code();
    }
    return ExitCode::ok;
  };
  EXPECT_EQ(code("info " + in("absent")), ExitCode::not_found);
  EXPECT_EQ(code("verify " + in("in")), ExitCode::bad_data);
  EXPECT_EQ(code("pack " + in("absent") + " -o " + in("o")), ExitCode::not_found);
  EXPECT_EQ(code("pack -o " + in("o")), ExitCode::usage);
  EXPECT_EQ(code("pack " + in("in")), ExitCode::usage);
  EXPECT_EQ(code("pack " + in("in") + " --out \"\""), ExitCode::usage);
  EXPECT_EQ(code("stage " + in("in") + " \"\""), ExitCode::usage);
  EXPECT_EQ(code("pack " + in("in") + " -o " + in("o") + " --shard-size huge"), ExitCode::usage);
  EXPECT_EQ(code("pack " + in("in") + " -o " + in("o") + " --files-from " + in("absent")),
            ExitCode::not_found);
  EXPECT_EQ(code("pack -o " + in("o") + " --files-from " + in("in")), ExitCode::not_found);
  std::ofstream(in("phrase")) << "correct horse battery staple\n";
  EXPECT_THAT(
      message_of<NotFound>([&] { run("pack -o " + in("o") + " --files-from " + in("phrase")); }),
      testing::AllOf(HasSubstr("path 1 of 1 does not exist"), testing::Not(HasSubstr("horse"))));
  EXPECT_EQ(code("pack " + in("in") + " -o " + folder_.string()), ExitCode::refused);
  EXPECT_EQ(code("convert " + in("in/0.txt") + " -o " + in("o") + " --vocab 10"),
            ExitCode::bad_data);
  EXPECT_EQ(code("nonsense"), ExitCode::usage);
}

TEST_F(DataCommandTest, NamesInNoEncodingBecomeJson) {
  const std::string odd = in("out\xFF");
  EXPECT_EQ(run("pack " + in("in") + " --json -o " + odd), 0);
  EXPECT_THAT(json::parse(printed_)["datasets"][0]["folder"], HasSubstr("out\xEF\xBF\xBD"));
  for (const std::string command : {"info --json ", "verify --json "}) {
    EXPECT_EQ(run(command + odd), 0);
    EXPECT_THAT(json::parse(printed_)["folder"], HasSubstr("out\xEF\xBF\xBD"));
  }
}

TEST_F(DataCommandTest, AListOfFilesIsPacked) {
  std::ofstream(folder_ / "list") << in("in/1.txt") << "\n\n" << in("in/2.txt") << "\n";
  EXPECT_EQ(run("pack --files-from " + in("list") + " -o " + in("out") + " --json"), 0);
  EXPECT_EQ(json::parse(printed_)["datasets"][0]["documents"], 2);
}

TEST_F(DataCommandTest, AListOfFilesMayComeFromAPipe) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string list = in("in/1.txt") + "\n" + in("in/2.txt");
  ASSERT_EQ(::write(ends[1], list.data(), list.size()), static_cast<ssize_t>(list.size()));
  ::close(ends[1]);
  run(fmt::format("pack --files-from /dev/fd/{} -o {} --json", ends[0], in("out")));
  EXPECT_EQ(json::parse(printed_)["datasets"][0]["documents"], 2);
  ::close(ends[0]);
}

TEST_F(DataCommandTest, AListOfFilesThatCannotBeReadToItsEndPacksNothing) {
  const std::string first = in("in/1.txt") + "\n";
  std::ofstream(folder_ / "binary") << first << std::string_view("x\0y\n", 4);
  std::ofstream(folder_ / "long") << first << std::string(5000, 'x') << "\n";
  const auto pack_list = [&](const std::string& list) {
    run("pack --files-from " + list + " -o " + in("out"));
  };
  // Reading from the start of this file fails with EIO.
  EXPECT_THROW(pack_list("/proc/self/mem"), IoError);
  for (const auto& [list, words] :
       std::map<std::string, std::string>{{in("binary"), "binary, line 2: holds a zero byte"},
                                          {in("long"), "long, line 2: is longer than 4096 bytes"},
                                          {"/dev/zero", "/dev/zero, line 1: holds a zero byte"}}) {
    EXPECT_THAT(message_of<DataError>([&] { pack_list(list); }), HasSubstr(words));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(DataCommandTest, ReportsOnTextsAndOnDatasets) {
  std::ofstream(folder_ / "in/40.txt") << "document 5\n";
  run("pack " + in("in") + " --out " + in("set"));
  EXPECT_EQ(run("report " + in("in") + " --json"), 0);
  const json texts = json::parse(printed_);
  EXPECT_EQ(texts["documents"], 41);
  EXPECT_EQ(texts["lengths"]["tokens"], nullptr);
  EXPECT_EQ(texts["lengths"]["bytes"]["most"], 12);
  EXPECT_EQ(texts["duplicates"]["equal"], 1);
  EXPECT_EQ(texts["scripts"]["latin"]["documents"], 41);
  EXPECT_EQ(texts["patterns"]["email"]["found"], 0);
  EXPECT_EQ(run("report " + in("set") + " --json"), 0);
  const json dataset = json::parse(printed_);
  EXPECT_EQ(dataset["lengths"]["bytes"], texts["lengths"]["bytes"]);
  EXPECT_EQ(dataset["lengths"]["tokens"]["most"], 13);
  EXPECT_EQ(dataset["duplicates"], texts["duplicates"]);
  run("report " + in("in"));
  EXPECT_THAT(printed_, testing::AllOf(HasSubstr("latin"), HasSubstr("payment_card")));
  // A folder of datasets holds no text: the report must not say that it found no personal data.
  fs::create_directories(folder_ / "split");
  fs::rename(folder_ / "set", folder_ / "split/train");
  EXPECT_THROW(run("report " + in("split")), DataError);
}

TEST_F(DataCommandTest, LeavesOutDuplicates) {
  std::ofstream(folder_ / "in/40.txt") << "document 5\n";
  run("pack " + in("in") + " --dedup exact --json --out " + in("set"));
  const json set = json::parse(printed_)["datasets"][0];
  EXPECT_EQ(set["documents"], 40);
  EXPECT_EQ(set["duplicates_left_out"], 1);
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { run("pack " + in("in") + " --dedup fuzzy --out " + in("other")); }),
              HasSubstr("--dedup fuzzy"));
}

TEST_F(DataCommandTest, ExportsWhatConvertReads) {
  run("pack " + in("in") + " --out " + in("set"));
  for (const std::string format : {"megatron", "npy"}) {
    const std::string name = in("exported-" + format);
    run("export " + in("set") + " --format " + format + " --out " + name + " --json");
    const json exported = json::parse(printed_);
    EXPECT_EQ(exported["documents"], 40);
    run("convert " + exported["files"][0].get<std::string>() + " --vocab 257 --tokenizer bytes" +
        " --json --out " + in("back-" + format));
    EXPECT_EQ(json::parse(printed_)["datasets"][0]["tokens"], exported["tokens"]);
    EXPECT_THROW(run("export " + in("set") + " --format " + format + " --out " + name),
                 PolicyError);
  }
  EXPECT_THROW(run("export " + in("set") + " --format parquet --out " + in("x")), ConfigError);
  EXPECT_THROW(run("export " + in("set") + " --format npy --out " + in("x/")), ConfigError);
  EXPECT_THROW(run("export " + in("set") + " --format npy --out " + in("set/x")), ConfigError)
      << "verify would call the dataset damaged";
}

TEST_F(DataCommandTest, EverySubcommandShowsAnExample) {
  for (const std::string command :
       {"pack", "info", "verify", "stage", "convert", "export", "report"}) {
    EXPECT_EQ(run(command + " --help"), 0);
    EXPECT_THAT(printed_,
                testing::AllOf(HasSubstr("Examples:"), HasSubstr("trireme data " + command)));
  }
}

}  // namespace
}  // namespace trireme
