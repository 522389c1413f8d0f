#include "src/train/run/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/train/run/done_mark.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RunDirectoryTest : public testing::Test {
 protected:
  nlohmann::json json_in(const char* name) const {
    return nlohmann::json::parse(read_file(run_.root() / name));
  }

  TempFolder folder_;
  RunDirectory run_{folder_.path() / "deep" / "run"};
};

TEST_F(RunDirectoryTest, BelongsToOneRunAtATime) {
  auto lock = run_.take();
  EXPECT_TRUE(fs::is_directory(run_.root() / "logs"));
  EXPECT_TRUE(fs::is_directory(run_.tensorboard()));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)run_.take(); }),
              HasSubstr(fmt::format("another run is using {}: host {}, process {} (since 20",
                                    run_.root().string(), host_name(), ::getpid())));
  lock.reset();
  EXPECT_TRUE(run_.take().has_value());
}

// The name of the lock's owner is written to the file.
TEST_F(RunDirectoryTest, ALockThatIsALinkIsNotFollowed) {
  fs::create_directories(run_.root());
  const fs::path target = folder_.path() / "precious";
  write_file_durably(target, "text");
  fs::create_symlink(target, run_.root() / ".lock");
  EXPECT_THAT(message_of<PolicyError>([&] { (void)run_.take(); }), HasSubstr("symbolic link"));
  EXPECT_EQ(read_file(target), "text");
}

TEST_F(RunDirectoryTest, IsDoneAtAStepUntilItContinues) {
  const auto lock = run_.take();
  EXPECT_EQ(run_.done_step(), std::nullopt);
  run_.mark_done(120);
  EXPECT_EQ(run_.done_step(), 120);
  EXPECT_FALSE(json_in("DONE").contains("early_stop"));
  EXPECT_NEAR(json_in("DONE").at("time").get<double>(), wall_clock_seconds(), 600);
  run_.clear_done();
  EXPECT_EQ(run_.done_step(), std::nullopt);
  run_.clear_done();  // there is nothing left to remove
  mark_done_early(run_, 80, "no improvement");
  EXPECT_EQ(run_.done_step(), 80);
  EXPECT_EQ(json_in("DONE").at("early_stop"), "no improvement");
}

TEST_F(RunDirectoryTest, TheFirstExitReasonStays) {
  const auto lock = run_.take();
  run_.write_exit_reason({76, "device", "a \"quoted\" fault", 3, "node7", 0, 41, "train"});
  run_.write_exit_reason({85, "hang", "what followed from it", 1, "node2", 9, 41, "train"});
  const nlohmann::json reason = json_in("exit_reason.json");
  EXPECT_EQ(reason.at("code"), 76);
  EXPECT_EQ(reason.at("kind"), "device");
  EXPECT_EQ(reason.at("message"), "a \"quoted\" fault");
  EXPECT_EQ(reason.at("rank"), 3);
  EXPECT_EQ(reason.at("host"), "node7");
  EXPECT_EQ(reason.at("signal"), 0);
  EXPECT_EQ(reason.at("step"), 41);
  EXPECT_EQ(reason.at("phase"), "train");
  run_.forget_exit_reason();
  run_.write_exit_reason({.code = 75,
                          .kind = "requeue",
                          .message = "\xFF is no UTF-8",
                          .rank = 0,
                          .host = "",
                          .signal = 15,
                          .step = 0,
                          .phase = ""});
  EXPECT_EQ(json_in("exit_reason.json").at("signal"), 15);
}

// The process is about to end, and an error must not keep it from that.
TEST_F(RunDirectoryTest, AnExitReasonWithoutAFolderIsLost) {
  EXPECT_NO_THROW(run_.write_exit_reason({}));
  EXPECT_FALSE(fs::exists(run_.root()));
  EXPECT_NO_THROW(run_.forget_exit_reason());
}

TEST_F(RunDirectoryTest, LogsSortByRank) {
  EXPECT_EQ(run_.log(0).filename(), "rank-00000.jsonl");
  EXPECT_EQ(run_.log(12345).filename(), "rank-12345.jsonl");
  EXPECT_EQ(run_.log(7).parent_path(), run_.root() / "logs");
}

TEST_F(RunDirectoryTest, RefusesADamagedDone) {
  const auto lock = run_.take();
  for (const char* text : {"", "[]", "{}", R"({"step":1e3})", R"({"step":-5})", R"({"step":"5"})",
                           R"({"step":4294967296})", R"({"step":18446744073709551615})", "[120]",
                           "120", R"({"step": 1.5})", R"({"step": 120)"}) {
    write_file_durably(run_.root() / "DONE", text);
    EXPECT_THAT(message_of<DataError>([&] { (void)run_.done_step(); }),
                testing::AllOf(HasSubstr("DONE is damaged: "),
                               HasSubstr("; remove it to continue the run")))
        << text;
  }
}

}  // namespace
}  // namespace trireme
