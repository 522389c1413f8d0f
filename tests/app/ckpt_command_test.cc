// Runs `trireme ckpt` in this process and checks its output and exit codes.
#include "src/app/checkpoint/ckpt_command.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/unprivileged.h"
#include "tests/support/without_policy.h"
#include "tests/support/words_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Result {
  int code = 0;
  std::string out;
  std::string err;
};

Result run(const std::string& arguments) {
  Result result;
  CommandLine app("", "trireme");
  AuditTrail audit;
  add_ckpt_command(app, result.code, audit, without_policy());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse(words_of("ckpt " + arguments));
  } catch (const Error& e) {
    result.code = static_cast<int>(e.exit_code());
    std::fputs(e.what(), stderr);
  }
  std::fflush(stdout);
  result.out = testing::internal::GetCapturedStdout();
  result.err = testing::internal::GetCapturedStderr();
  return result;
}

class CkptCommand : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::int64_t step : {1, 2, 3}) {
      ASSERT_TRUE(save_state(folder_.path(), small_state(static_cast<std::uint64_t>(step)), step,
                             cut_flat, 2)
                      .durable);
    }
  }
  void damage(std::int64_t step) {
    const int fd = ::open((step_path(folder_.path(), step) / "shard-00001.safetensors").c_str(),
                          O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(::pwrite(fd, "????", 4, 4100), 4);
    ::close(fd);
  }
  std::string dir() const { return folder_.path().string(); }
  std::string dir(std::int64_t step) const { return step_path(folder_.path(), step).string(); }

  TempFolder folder_;
};

TEST_F(CkptCommand, LsListsTheNewestFirstAndDamageBeforeAll) {
  fs::remove(fs::path(dir(1)) / "manifest.json");
  const Result table = run("ls " + dir());
  EXPECT_EQ(table.code, 0);
  EXPECT_LT(table.out.find("INVALID"), table.out.find("read back"));
  const auto json = nlohmann::json::parse(run("ls --json " + dir()).out);
  ASSERT_EQ(json.at("checkpoints").size(), 3U);
  EXPECT_FALSE(json["checkpoints"][0]["valid"]);
  EXPECT_EQ(json["checkpoints"][1]["step"], 3);
  EXPECT_EQ(json["checkpoints"][1]["shards"], 2);
}

TEST_F(CkptCommand, ShowTellsTensorsAndMeta) {
  EXPECT_THAT(run("show " + dir()).out,
              AllOf(HasSubstr("step 3, 96 samples"), HasSubstr("wte.weight"), HasSubstr("hidden")));
  const auto json = nlohmann::json::parse(run("show --json " + dir(2)).out);
  EXPECT_EQ(json.at("step"), 2);
  EXPECT_EQ(json.at("config").at("model").at("hidden"), 10);
  EXPECT_EQ(json.at("tensors").size(), small_state().size());
}

TEST_F(CkptCommand, VerifyNamesFileAndBlock) {
  EXPECT_EQ(run("verify " + dir()).code, 0);
  EXPECT_EQ(run("verify --all " + dir()).code, 0);
  damage(1);
  EXPECT_EQ(run("verify " + dir()).code, 0);
  EXPECT_EQ(run("verify --all " + dir()).code, 65);
  const Result one = run("verify " + dir(1));
  EXPECT_EQ(one.code, 65);
  EXPECT_THAT(one.out, AllOf(HasSubstr("BAD"), HasSubstr("step-00000001/shard-00001.safetensors"),
                             HasSubstr("block 0")));
}

TEST_F(CkptCommand, DigestIsThatOfTheContents) {
  TempFolder other;
  ASSERT_TRUE(save_state(other.path(), small_state(3), 77, cut_columns, 3).durable);
  const Result digest = run("digest " + dir());
  EXPECT_THAT(digest.out, StartsWith("sha256:"));
  EXPECT_EQ(digest.out.size(), 72U);
  EXPECT_EQ(run("digest " + other.path().string()).out, digest.out);
  EXPECT_NE(run("digest " + dir(2)).out, digest.out);
  const Result model = run("digest --model " + dir());
  EXPECT_NE(model.out, digest.out);
  const auto json = nlohmann::json::parse(run("digest --model --json " + dir()).out);
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_EQ(json.at("path"), dir(3));
  EXPECT_EQ(json.at("step"), 3);
  EXPECT_EQ(json.at("scope"), "model");
  EXPECT_EQ(json.at("digest").get<std::string>() + "\n", model.out);
  damage(3);
  const Result bad = run("digest " + dir(3));
  EXPECT_EQ(bad.code, 65);
  EXPECT_THAT(bad.err, HasSubstr("shard-00001.safetensors: block 0"));
  EXPECT_EQ(bad.out, "");
}

TEST_F(CkptCommand, AFolderMeansItsNewestValidStepAndSaysWhatItSkipped) {
  fs::remove(fs::path(dir(3)) / "shard-00000.safetensors");
  const Result shown = run("digest " + dir());
  EXPECT_EQ(shown.out, run("digest " + dir(2)).out);
  EXPECT_THAT(shown.err, AllOf(StartsWith("skipped: "), HasSubstr("shard-00000.safetensors")));
}

TEST_F(CkptCommand, AnUnreadableStepIsRefusedNotSkipped) {
  forbid_reading(folder_.path(), fs::path(dir(3)) / "shard-00001.safetensors");
  const Unprivileged nobody;
  if (!nobody.bound()) {
    GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
  }
  const auto names_the_shard = AllOf(HasSubstr("shard-00001.safetensors"), HasSubstr("readable"));
  for (const std::string command : {"digest ", "show ", "verify "}) {
    const Result result = run(command + dir());
    EXPECT_EQ(result.code, 77) << command;
    EXPECT_THAT(result.err, names_the_shard);
  }
  const Result all = run("verify --all " + dir());
  EXPECT_EQ(all.code, 77);
  EXPECT_THAT(all.out, AllOf(names_the_shard, HasSubstr("ok  " + dir(2))));
  EXPECT_EQ(run("digest " + dir(3)).code, 77);
  EXPECT_EQ(run("digest " + dir(2)).code, 0);
  EXPECT_THAT(run("ls " + dir()).out, HasSubstr("UNREADABLE: "));
}

TEST_F(CkptCommand, AStepsFolderIsListedButNotPruned) {
  const auto json = nlohmann::json::parse(run("ls --json " + dir(2) + "/").out);
  ASSERT_EQ(json.at("checkpoints").size(), 1U);
  EXPECT_EQ(json["checkpoints"][0]["step"], 2);
  EXPECT_EQ(run("verify --all " + dir(2)).code, 0);
  const Result pruned = run("prune --keep 2 " + dir(2));
  EXPECT_EQ(pruned.code, 2);
  EXPECT_THAT(pruned.err, HasSubstr("is a single checkpoint"));
  EXPECT_EQ(run("ls " + dir(9)).code, 66);
  EXPECT_EQ(run("prune " + dir(9)).code, 66);
}

TEST_F(CkptCommand, DamageInTheNewestPointsToTheOthers) {
  damage(3);
  for (const std::string& command : {"digest " + dir(3), "verify " + dir()}) {
    const Result bad = run(command);
    EXPECT_EQ(bad.code, 65);
    EXPECT_THAT(bad.out + bad.err, AllOf(HasSubstr("ckpt verify --all " + dir() + "'"),
                                         HasSubstr("step-00000002 is older")));
  }
}

TEST_F(CkptCommand, DigestSkipsANewestStepWithDamagedContents) {
  damage(3);
  const Result shown = run("digest " + dir());
  EXPECT_EQ(shown.out, run("digest " + dir(2)).out);
  EXPECT_THAT(shown.err, AllOf(StartsWith("skipped: "), HasSubstr("shard-00001.safetensors")));
}

TEST_F(CkptCommand, PruneKeepsTheNewest) {
  const Result dry = run("prune --keep 2 --dry-run " + dir());
  EXPECT_THAT(dry.out, AllOf(HasSubstr("would delete"), HasSubstr("step-00000001")));
  EXPECT_TRUE(fs::exists(dir(1)));
  EXPECT_EQ(run("prune --keep 1 " + dir()).code, 2);
  EXPECT_EQ(run("prune --keep 2 " + dir()).code, 0);
  EXPECT_FALSE(fs::exists(dir(1)));
  EXPECT_TRUE(fs::exists(dir(2)));
  EXPECT_TRUE(fs::exists(dir(3)));
  EXPECT_THAT(run("prune --keep 2 " + dir()).out, HasSubstr("nothing to prune"));
}

TEST_F(CkptCommand, VerifyPrintsJson) {
  auto json = nlohmann::json::parse(run("verify --json " + dir()).out);
  EXPECT_EQ(json.at("schema"), 1);
  EXPECT_TRUE(json.at("valid"));
  ASSERT_EQ(json.at("checkpoints").size(), 1U);
  EXPECT_EQ(json["checkpoints"][0].at("step"), 3);
  EXPECT_TRUE(json["checkpoints"][0].at("damage").empty());
  damage(1);
  fs::remove(fs::path(dir(2)) / "manifest.json");
  const Result all = run("verify --all --json " + dir());
  EXPECT_EQ(all.code, 65);
  json = nlohmann::json::parse(all.out);
  EXPECT_FALSE(json.at("valid"));
  ASSERT_EQ(json.at("checkpoints").size(), 3U);
  for (const auto& checkpoint : json["checkpoints"]) {
    EXPECT_EQ(checkpoint.at("valid"), checkpoint.at("step") == 3);
    EXPECT_EQ(checkpoint.at("damage").empty(), checkpoint.at("step") == 3);
    EXPECT_EQ(checkpoint.contains("shards"), checkpoint.at("step") != 2);
  }
}

TEST_F(CkptCommand, PrunePrintsJson) {
  const auto pruned = [this](const std::string& options) {
    const Result result = run("prune --keep 2 --json " + options + dir());
    EXPECT_EQ(result.code, 0);
    return nlohmann::json::parse(result.out);
  };
  for (const bool dry_run : {true, false}) {
    const auto json = pruned(dry_run ? "--dry-run " : "");
    EXPECT_EQ(json.at("schema"), 1);
    EXPECT_EQ(json.at("dry_run"), dry_run);
    ASSERT_EQ(json.at("pruned").size(), 1U);
    EXPECT_EQ(json["pruned"][0].at("path"), dir(1));
    EXPECT_GT(json["pruned"][0].at("bytes"), 0);
    EXPECT_EQ(json.at("kept"), 2);
    EXPECT_EQ(fs::exists(dir(1)), dry_run);
  }
  EXPECT_TRUE(pruned("").at("pruned").empty());
}

TEST_F(CkptCommand, PruneDeletesNothingUnderARun) {
  {
    const RunLock lock(folder_.path(), false);
    const Result refused = run("prune --keep 2 " + dir());
    EXPECT_EQ(refused.code, 77);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("nothing was deleted"), HasSubstr("alive"),
                                   Not(HasSubstr("dead"))));
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(run("prune --keep 2 --dry-run " + dir()).code, 0);
    EXPECT_TRUE(fs::exists(dir(1)));
    EXPECT_EQ(run("prune --keep 3 " + dir()).code, 77);  // even with nothing to prune
  }
  EXPECT_EQ(run("prune --keep 2 " + dir()).code, 0);
  EXPECT_FALSE(fs::exists(dir(1)));
  EXPECT_FALSE(fs::exists(folder_.path() / kLockName));
}

TEST_F(CkptCommand, PruneMakesRoomOnAFullDisk) {
  const SmallFileSystem disk(1 << 20);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  fs::copy(folder_.path(), disk.path(), fs::copy_options::recursive);
  const fs::path filler = disk.path() / "filler";
  const int fd = ::open(filler.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const std::string block(4096, 'x');
  while (::write(fd, block.data(), block.size()) > 0) {
  }
  EXPECT_EQ(errno, ENOSPC);
  ::close(fd);
  EXPECT_EQ(run("prune --keep 2 " + disk.path().string()).code, 0);
  EXPECT_FALSE(fs::exists(step_path(disk.path(), 1)));
  EXPECT_TRUE(fs::exists(step_path(disk.path(), 2)));
}

TEST_F(CkptCommand, ShowsTheConfigurationInLines) {
  EXPECT_THAT(run("show " + dir(1)).out,
              HasSubstr("  config:\n    model: {\"hidden\":10,\"layers\":1}\n"
                        "    name: \"sample\"\n  numerics:\n    isa: \"avx2\"\n  extra:\n"));
}

TEST_F(CkptCommand, EndsWithTheCodesOfTheContract) {
  for (const char* const command : {"ls ", "digest ", "prune "}) {
    const Result absent = run(command + dir() + "/nowhere");
    EXPECT_EQ(absent.code, 66);
    EXPECT_THAT(absent.err, HasSubstr("/nowhere does not exist"));
  }
  const Result memory = run("ls " + dir() + " --memory /nope");
  EXPECT_EQ(memory.code, 66);
  EXPECT_THAT(memory.err, HasSubstr("--memory /nope: there is no such folder"));
  EXPECT_EQ(memory.out, "");
  EXPECT_EQ(run("show " + dir(9)).code, 66);
  EXPECT_EQ(run("show").code, 2);
  EXPECT_EQ(run("polish " + dir()).code, 2);
  for (const std::int64_t step : {1, 2, 3}) {
    fs::remove(fs::path(dir(step)) / "manifest.json");
  }
  EXPECT_EQ(run("show " + dir()).code, 65);
}

TEST_F(CkptCommand, OfARunsFolderItSaysWhereTheCheckpointsAre) {
  const TempFolder run_folder;
  fs::create_directory(run_folder.path() / "checkpoints");
  for (const char* const command : {"ls ", "digest "}) {
    const Result result = run(command + run_folder.path().string());
    EXPECT_EQ(result.code, 66);
    EXPECT_THAT(result.err,
                HasSubstr("did you mean " + run_folder.path().string() + "/checkpoints?"));
  }
}

TEST_F(CkptCommand, EveryHelpHasAnExample) {
  for (const char* command : {"ls", "show", "verify", "digest", "prune"}) {
    EXPECT_THAT(run(std::string(command) + " --help").out,
                HasSubstr(std::string("Examples:\n  trireme ckpt ") + command));
  }
}

}  // namespace
}  // namespace trireme
