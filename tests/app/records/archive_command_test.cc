// What `trireme archive` takes from a folder, what it leaves there, and what its manifest says.
#include "src/app/study/archive_command.h"

#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ArchiveCommand : public testing::Test {
 protected:
  ArchiveCommand() : before_(fs::current_path()) { fs::current_path(folder_.path()); }
  ~ArchiveCommand() override { fs::current_path(before_); }

  static void write(const fs::path& path, const std::string& text) {
    if (path.has_parent_path()) {
      fs::create_directories(path.parent_path());
    }
    std::ofstream(path, std::ios::binary) << text;
  }
  static CommandRun archive(std::vector<std::string> words) {
    words.insert(words.begin(), "archive");
    return run_command_line([](CommandLine& app, int&) { add_archive_command(app); }, words);
  }
  // Reads the files of the archive into `files_`, and their names in order into `names_`.
  void open(const fs::path& path) {
    const std::string tar = read_file(path);
    files_.clear();
    names_.clear();
    for (std::size_t at = 0; tar.at(at) != '\0';) {
      const std::string name = tar.substr(at, 100).c_str();
      const std::string prefix = tar.substr(at + 345, 155).c_str();
      const std::size_t size = std::stoul(tar.substr(at + 124, 12), nullptr, 8);
      names_.push_back(prefix.empty() ? name : prefix + "/" + name);
      files_[names_.back()] = tar.substr(at + 512, size);
      times_[names_.back()] = std::stol(tar.substr(at + 136, 12), nullptr, 8);
      at += 512 + (size + 511) / 512 * 512;
    }
  }
  json manifest() const { return json::parse(files_.at(names_.front())); }
  // Returns why each file was left out, by name.
  std::map<std::string, std::string> left_out() const {
    std::map<std::string, std::string> reasons;
    const json document = manifest();
    for (const json& each : document["left_out"]) {
      reasons[each["name"]] = each["why"];
    }
    return reasons;
  }

  TempFolder folder_;
  const fs::path before_;
  std::map<std::string, std::string> files_;
  std::map<std::string, long> times_;
  std::vector<std::string> names_;
};

TEST_F(ArchiveCommand, TakesTextsByTheirNamesAndSaysWhatItLeaves) {
  write("run/config.yaml", "steps: 5\n");
  write("run/metrics.jsonl", "{}\n");
  write("run/DONE", "{}");
  write("run/logs/rank-00000.jsonl", "log\n");
  write("run/model.safetensors", "weights");
  write("run/.lock", "");
  write("run/checkpoints/step-00000001/manifest.json", "{}");
  write("run/tensorboard/events.txt", "figures");
  const CommandRun run = archive({"run"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(testing::StartsWith("run.tar: 4 files of "),
                             HasSubstr(", 0 secrets removed, 4 left out\nlook at "
                                       "run/MANIFEST.json in it before you send it\n")));
  open("run.tar");
  EXPECT_THAT(names_, ElementsAre("run/MANIFEST.json", "run/DONE", "run/config.yaml",
                                  "run/logs/rank-00000.jsonl", "run/metrics.jsonl"));
  EXPECT_EQ(files_["run/config.yaml"], "steps: 5\n");
  const std::map<std::string, std::string> expected = {
      {".lock", "no log, configuration or result by its name"},
      {"checkpoints/", "weights, figures and keys stay here"},
      {"tensorboard/", "weights, figures and keys stay here"},
      {"model.safetensors", "no log, configuration or result by its name"}};
  EXPECT_EQ(left_out(), expected);
}

TEST_F(ArchiveCommand, EveryKindOfTextIsKnownByItsSuffix) {
  const std::vector<std::string> suffixes = {".yaml", ".yml", ".json", ".jsonl", ".log",    ".out",
                                             ".err",  ".txt", ".csv",  ".svg",   ".sbatch", ".job"};
  for (const std::string& suffix : suffixes) {
    write("run/a" + suffix, "text");
  }
  for (const char* const other : {"a", "a.h5", "a.yaml.bak", "log", "done"}) {
    write(fs::path("run") / other, "text");
  }
  archive({"run"});
  open("run.tar");
  EXPECT_EQ(names_.size(), suffixes.size() + 1);
  EXPECT_EQ(left_out().size(), 5U);
}

TEST_F(ArchiveCommand, TheManifestDescribesTheFilesAsTheyAreInTheArchive) {
  write("run/a.log", "password: hunter2hunter2\n");
  write("run/b.log", "calm\n");
  fs::last_write_time("run/a.log", fs::file_time_type::clock::now() - std::chrono::hours(48));
  archive({"run"});
  open("run.tar");
  const json document = manifest();
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["anonymous"], false);
  EXPECT_EQ(document["secrets_removed"], 1);
  ASSERT_EQ(document["files"].size(), 2U);
  for (const json& file : document["files"]) {
    const std::string& text = files_.at("run/" + file["name"].get<std::string>());
    EXPECT_EQ(file["bytes"], text.size());
    EXPECT_EQ(file["sha256"], sha256_hex(text));
  }
  EXPECT_EQ(document["files"][0]["secrets_removed"], 1);
  EXPECT_EQ(document["files"][1]["secrets_removed"], 0);
  EXPECT_EQ(times_["run/MANIFEST.json"], times_["run/b.log"]) << "it is as old as the newest file";
  EXPECT_LT(times_["run/a.log"], times_["run/b.log"] - 86400);
}

TEST_F(ArchiveCommand, SecretsStayEvenInNames) {
  write("run/config.yaml", "api_key: hunter2hunter2\nlr: 0.5\n");
  const std::string token = std::string("ghp") + "_0123456789abcdefghijABCDEFGHIJ012345";
  write("run/" + token + ".log", "calm\n");
  write("run/" + token + ".bin", "");
  const CommandRun run = archive({"run"});
  EXPECT_THAT(run.out, HasSubstr(", 1 secret removed, 1 left out"));
  open("run.tar");
  EXPECT_THAT(files_["run/config.yaml"], AllOf(HasSubstr("lr: 0.5"), HasSubstr("REDACTED")));
  const std::string whole = read_file("run.tar");
  EXPECT_THAT(whole, Not(HasSubstr("hunter2")));
  EXPECT_THAT(whole, Not(HasSubstr(token)));
}

TEST_F(ArchiveCommand, FilesWithSecretsInTheirNamesKeepTheirFoldersAndSuffixes) {
  write("run/token=hunter2/a.txt", "1\n");
  write("run/token=hunter2/b.txt", "2\n");
  write("run/token=hunter3/a.txt", "3\n");
  write("run/token=hunter2.txt", "4\n");
  write("run/token=hunter2.bin", "");
  write("run/MANIFEST.json", "{}");
  write("run/.env", "TOKEN=hunter2\n");
  archive({"run"});
  open("run.tar");
  EXPECT_THAT(names_, ElementsAre("run/MANIFEST.json", "run/MANIFEST-2.json",
                                  "run/token=REDACTED/a.txt", "run/token=REDACTED/b.txt",
                                  "run/token=REDACTED.txt", "run/token=REDACTED/a-2.txt"));
  EXPECT_EQ(files_["run/token=REDACTED/a.txt"], "1\n");
  EXPECT_EQ(files_["run/token=REDACTED/a-2.txt"], "3\n");
  EXPECT_EQ(left_out().size(), 2U);
  EXPECT_TRUE(left_out().contains(".env"));
}

TEST_F(ArchiveCommand, OnlyANamedArchiveIsReplaced) {
  write("runs/token=Abc123def/a.log", "calm\n");
  EXPECT_EQ(archive({"runs/token=Abc123def"}).code, 0);
  open("token=REDACTED.tar");
  EXPECT_EQ(names_.back(), "token=REDACTED/a.log");
  const CommandRun anonymous = archive({"runs/token=Abc123def", "--anonymous"});
  EXPECT_THAT(anonymous.out, testing::StartsWith("archive.tar: "));
  const CommandRun again = archive({"runs/token=Abc123def", "--anonymous"});
  EXPECT_EQ(again.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(again.err, HasSubstr("archive.tar exists: name the archive with -o FILE"));
  EXPECT_EQ(archive({"runs/token=Abc123def", "-o", "archive.tar"}).code, 0);
  EXPECT_THAT(archive({""}).err, HasSubstr("RUN is empty"));
}

TEST_F(ArchiveCommand, WhatIsNoTextIsLeftOut) {
  write("run/good.log", "good\n");
  write("run/binary.log", std::string("a\0b", 3));
  fs::create_symlink("good.log", "run/link.log");
  ASSERT_EQ(::mkfifo("run/pipe.log", 0600), 0);
  write("run/large.log", "");
  fs::resize_file("run/large.log", (std::int64_t{64} << 20) + 1);
  write("run/" + std::string(110, 'n') + ".log", "text");
  archive({"run"});
  open("run.tar");
  EXPECT_EQ(names_.size(), 2U);
  const auto reasons = left_out();
  EXPECT_EQ(reasons.at("binary.log"), "not a text, so that it cannot be searched for secrets");
  EXPECT_EQ(reasons.at("link.log"), "not a regular file");
  EXPECT_EQ(reasons.at("pipe.log"), "not a regular file");
  EXPECT_THAT(reasons.at("large.log"), HasSubstr("too large ("));
  EXPECT_THAT(reasons.at(std::string(110, 'n') + ".log"), HasSubstr("too long"));
}

TEST_F(ArchiveCommand, LinesWithZerosStayAndNoOthers) {
  const std::string torn = std::string("{\"step\":2,") + std::string(5, '\0');
  write("run/metrics.jsonl", "{\"step\":1}\n" + torn + "\n{\"step\":3}\n" + torn);
  write("run/zeros.jsonl", std::string(4096, '\0'));
  write("run/empty.jsonl", "");
  archive({"run"});
  open("run.tar");
  EXPECT_EQ(files_.at("run/metrics.jsonl"), "{\"step\":1}\n{\"step\":3}\n");
  EXPECT_EQ(files_.at("run/empty.jsonl"), "");
  EXPECT_EQ(left_out().at("zeros.jsonl"), "not a text, so that it cannot be searched for secrets");
}

TEST_F(ArchiveCommand, AStrictArchiveTellsDamagedRecordsFromForeignFiles) {
  write("run/metrics.jsonl", "{\"step\":1}\n");
  write("run/exit_reason.json", "{\"code\": 3,");
  write("run/foreign.json", "[1]");
  const CommandRun run = archive({"run", "--strict"});
  EXPECT_THAT(run.err, HasSubstr("left out exit_reason.json: damaged"));
  open("archive.tar");
  EXPECT_EQ(left_out().at("exit_reason.json"), "damaged");
  EXPECT_EQ(left_out().size(), 2U);
}

TEST_F(ArchiveCommand, FoldersAreSearchedSixDeep) {
  write("run/1/2/3/4/5/6/in.log", "in\n");
  write("run/1/2/3/4/5/6/7/out.log", "out\n");
  fs::create_directory_symlink("..", "run/1/loop");
  archive({"run"});
  open("run.tar");
  EXPECT_THAT(names_, ElementsAre("run/MANIFEST.json", "run/1/2/3/4/5/6/in.log"));
  EXPECT_EQ(left_out().at("1/2/3/4/5/6/7/"), "too deep");
  EXPECT_TRUE(left_out().contains("1/loop")) << "links are not followed";
}

TEST_F(ArchiveCommand, OtherFilesCanBeAddedWhateverTheirNames) {
  write("run/a.log", "a\n");
  write("slurm-1", "output\n");
  write("other/slurm-1", "another\n");
  EXPECT_EQ(archive({"run", "--with", "slurm-1", "--with", "other/slurm-1"}).code, 0);
  open("run.tar");
  EXPECT_EQ(files_.at("run/more/slurm-1"), "output\n");
  EXPECT_EQ(files_.at("run/more/2/slurm-1"), "another\n");
  EXPECT_EQ(manifest()["files"].size(), 3U);
  const CommandRun absent = archive({"run", "--with", "absent.out"});
  EXPECT_EQ(absent.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(absent.err, AllOf(HasSubstr("absent.out"), Not(HasSubstr("cannot cannot"))));
}

TEST_F(ArchiveCommand, WhatWasAskedForIsNotLeftOutSilently) {
  write("run/a.log", "a\n");
  write("binary", std::string("a\0b", 3));
  fs::create_directory("folder");
  fs::create_symlink("binary", "link");
  ASSERT_EQ(::mkfifo("pipe", 0600), 0);
  for (const std::string name : {"binary", "folder", "link", "pipe", "/dev/zero"}) {
    const CommandRun run = archive({"run", "--with", name});
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage)) << name;
    EXPECT_THAT(run.err, HasSubstr("--with " + name + " cannot be bundled: not a "));
  }
  EXPECT_FALSE(fs::exists("run.tar"));
}

TEST_F(ArchiveCommand, AnArchiveReplacesNoneOfItsInputs) {
  write("run/metrics.jsonl", "{}\n");
  write("slurm-1", "output\n");
  fs::create_hard_link("slurm-1", "same");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"run", "-o", "run/../run/metrics.jsonl"},
        {"run", "--with", "slurm-1", "-o", "slurm-1"},
        {"run", "--with", "slurm-1", "-o", "same"}}) {
    const CommandRun run = archive(words);
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
    EXPECT_THAT(run.err, HasSubstr("would replace a file"));
  }
  EXPECT_EQ(read_file("run/metrics.jsonl"), "{}\n");
  EXPECT_EQ(read_file("slurm-1"), "output\n");
  EXPECT_EQ(archive({"run", "-o", "run/case.tar"}).code, 0);
  EXPECT_EQ(archive({"run", "-o", "run/case.tar"}).code, 0) << "its own archive is replaced";
}

TEST_F(ArchiveCommand, TheArchiveIsNamedAfterTheFolder) {
  write("run/a.log", "a\n");
  EXPECT_THAT(archive({"run/"}).out, testing::StartsWith("run.tar: 1 file of "));
  EXPECT_THAT(archive({"run", "-o", "case.tar"}).out, testing::StartsWith("case.tar: "));
  open("case.tar");
  EXPECT_EQ(names_.back(), "run/a.log");
  const std::string longest(60, 'x');
  write(longest + "/a.log", "a\n");
  write(longest + "x/a.log", "a\n");
  EXPECT_THAT(archive({longest}).out, testing::StartsWith(longest + ".tar: "));
  EXPECT_THAT(archive({longest + "x"}).out, testing::StartsWith("archive.tar: "));
}

TEST_F(ArchiveCommand, TheFolderStaysAsItIsWhenItIsTheCurrentOne) {
  write("site/run/logs/a.log", "a\n");
  fs::current_path("site/run");
  EXPECT_THAT(archive({"."}).out, testing::StartsWith("../run.tar: 1 file of "));
  EXPECT_THAT(archive({"..", "--anonymous"}).out, testing::StartsWith("../../archive.tar: "));
  EXPECT_THAT(archive({"logs"}).out, testing::StartsWith("logs.tar: ")) << "it is not in logs";
  fs::remove("logs.tar");
  fs::remove("../run.tar");
  fs::current_path("logs");
  EXPECT_THAT(archive({"../../run"}).out, testing::StartsWith("../../run.tar: "));
  std::vector<std::string> left;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    left.push_back(entry.path().lexically_relative(folder_.path()));
  }
  EXPECT_THAT(left, testing::UnorderedElementsAre("archive.tar", "site", "site/run", "site/run.tar",
                                                  "site/run/logs", "site/run/logs/a.log"));
}

// A listing that --with adds may be any text of the system's.
TEST_F(ArchiveCommand, HashesOfPasswordsStay) {
  write("run/a.log", "a\n");
  write("shadow", "root:$6$rounds=5000$ab/cd.ef$" + std::string(86, 'h') + ":19000:0:99999:7:::\n");
  EXPECT_THAT(archive({"run", "--with", "shadow"}).out, HasSubstr(", 1 secret removed"));
  open("run.tar");
  EXPECT_EQ(files_.at("run/more/shadow"), "root:REDACTED:19000:0:99999:7:::\n");
}

TEST_F(ArchiveCommand, AnAnonymousArchiveNamesNoHost) {
  write("secretnode17/a.jsonl",
        "{\"host\":\"secretnode17\",\"user\":\"janedoe\"}\nby janedoe on secretnode17\n");
  write("secretnode17/secretnode17.bin", "");
  const CommandRun run = archive({"secretnode17", "--anonymous"});
  EXPECT_EQ(run.code, 0) << run.err;
  open("archive.tar");
  EXPECT_EQ(manifest()["anonymous"], true);
  const std::string whole = read_file("archive.tar");
  EXPECT_THAT(whole, AllOf(Not(HasSubstr("secretnode17")), Not(HasSubstr("janedoe"))));
  const std::string& text = files_.at("archive/a.jsonl");
  const std::size_t at = text.find("host-");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find(text.substr(at, 6), at + 1), std::string::npos) << "the same name twice";
}

TEST_F(ArchiveCommand, ListedTextsStay) {
  write("run/falcon-notes.txt", "Falcon by Jane Doe\n");
  write("run/a.jsonl", "{\"by\": \"jane doe\", \"password\": \"x\"}\n");
  write("run/names.txt", "falcon\nJane Doe\n");
  ASSERT_EQ(archive({"run", "--hide", "run/names.txt", "-o", "a.tar"}).code,
            static_cast<int>(ExitCode::ok));
  open("a.tar");
  EXPECT_EQ(files_.at("run/REDACTED-notes.txt"), "REDACTED by REDACTED\n");
  EXPECT_EQ(files_.at("run/a.jsonl"), "{\"by\": \"REDACTED\", \"password\": \"REDACTED\"}\n");
  EXPECT_EQ(manifest().at("secrets_removed"), 4);
  EXPECT_EQ(left_out().at("names.txt"), "the list of --hide");
  write("short.txt", "long enough\nab\n");
  EXPECT_EQ(archive({"run", "--hide", "short.txt", "-o", "b.tar"}).code,
            static_cast<int>(ExitCode::bad_data));
  EXPECT_EQ(archive({"run", "--hide", "none.txt", "-o", "b.tar"}).code,
            static_cast<int>(ExitCode::not_found));
  EXPECT_EQ(archive({"run", "--hide", "run/names.txt", "-o", "run/names.txt"}).code,
            static_cast<int>(ExitCode::usage));
  EXPECT_FALSE(fs::exists("b.tar"));
}

TEST_F(ArchiveCommand, JsonCountsTheSame) {
  write("run/a.log", "password: hunter2hunter2\n");
  write("run/b.bin", "");
  const CommandRun run = archive({"run", "--json"});
  const json summary = json::parse(run.out);
  EXPECT_EQ(summary["file"], "run.tar");
  EXPECT_EQ(summary["bytes"], fs::file_size("run.tar"));
  EXPECT_EQ(summary["files"], 1);
  EXPECT_EQ(summary["left_out"], 1);
  EXPECT_EQ(summary["secrets_removed"], 1);
}

TEST_F(ArchiveCommand, WhereNothingFitsThereIsNoArchive) {
  write("file", "");
  write("empty/b.bin", "");
  const CommandRun file = archive({"file"});
  EXPECT_EQ(file.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(file.err, HasSubstr("file is not a folder: give that of a run"));
  const CommandRun empty = archive({"empty"});
  EXPECT_EQ(empty.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(empty.err, HasSubstr("empty holds no log, configuration or result"));
  EXPECT_EQ(archive({"absent"}).code, static_cast<int>(ExitCode::not_found));
  EXPECT_FALSE(fs::exists("empty.tar"));
}

}  // namespace
}  // namespace trireme
