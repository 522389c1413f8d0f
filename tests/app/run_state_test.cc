#include "src/app/launch/run_state.h"

#include <cmath>
#include <ctime>
#include <fstream>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>

#include "src/app/launch/status_command.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/is_locked.h"
#include "tests/app/command_run.h"
#include "tests/support/environment_variables.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/unprivileged.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class RunStateTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(run_ / name, std::ios::binary) << text;
  }
  // Writes a configuration of 100 steps.
  void write_config() const {
    write("config.yaml",
          "model: {preset: tiny-gpt2}\n"
          "data: {train: /nowhere}\n"
          "train: {steps: 100, global_batch: 8}\n"
          "run: {dir: " +
              run_.string() + "}\n");
  }
  RunState state() const { return state_of_run(run_); }

  TempFolder folder_;
  const std::filesystem::path run_ = folder_.path();
};

// Holds the lock of a file as another process would.
class Locked {
 public:
  explicit Locked(const std::filesystem::path& path)
      : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
    EXPECT_EQ(::flock(file_.get(), LOCK_EX | LOCK_NB), 0);
  }

 private:
  UniqueHandle<FileDescriptorTraits> file_;
};

TEST_F(RunStateTest, AFolderIsARunOnceAnyOfItsFilesIsThere) {
  EXPECT_THAT(message_of<NotFound>([&] { (void)state(); }),
              AllOf(HasSubstr(run_.string()), HasSubstr("is not the folder of a run")));
  constexpr const char* kEvent = R"({"time":1,"clock":0,"launch":"a","event":"begin"})";
  const std::vector<std::pair<const char*, const char*>> files = {{"metrics.jsonl", "{\"step\":1}"},
                                                                  {"journal.jsonl", kEvent},
                                                                  {"config.yaml", "x"},
                                                                  {".lock", ""}};
  for (const auto& [name, text] : files) {
    write(name, text);
    EXPECT_EQ(state().state, "interrupted") << name;
    std::filesystem::remove(run_ / name);
  }
  // Lines that are not objects are no sign of a run.
  write("metrics.jsonl", "5\n[1]\n{\"step\":");
  EXPECT_THROW((void)state(), NotFound);
  EXPECT_THROW((void)state_of_run(run_ / "nowhere"), NotFound);
}

TEST_F(RunStateTest, LocksComeBeforeWhatTheFilesSay) {
  write_config();
  write("DONE", "{\"step\":100}");
  {
    const Locked launch(run_ / ".launch.lock");
    EXPECT_EQ(state().state, "starting");
    const Locked ranks(run_ / ".lock");
    EXPECT_EQ(state().state, "running");
  }
  EXPECT_EQ(state().state, "finished");
}

TEST_F(RunStateTest, AnUnlockedOrMissingFileIsNotLocked) {
  EXPECT_FALSE(is_locked(run_ / ".lock"));
  write(".lock", "");
  EXPECT_FALSE(is_locked(run_ / ".lock"));
  const Locked lock(run_ / ".lock");
  EXPECT_TRUE(is_locked(run_ / ".lock"));
  std::filesystem::create_symlink(run_ / ".lock", run_ / "link");
  EXPECT_FALSE(is_locked(run_ / "link"));
}

TEST_F(RunStateTest, TheEndIsThatOfDoneOrOfTheExitReason) {
  write_config();
  const auto reason = [](int code) {
    return nlohmann::json({{"code", code},
                           {"kind", "x"},
                           {"message", "why"},
                           {"rank", 1},
                           {"host", "n1"},
                           {"step", 7},
                           {"phase", "train"}})
        .dump();
  };
  EXPECT_EQ(state().state, "interrupted");
  write("exit_reason.json", reason(75));
  EXPECT_EQ(state().state, "stopped");
  write("exit_reason.json", reason(143));  // ended by a second signal, without a save
  EXPECT_EQ(state().state, "interrupted");
  write("exit_reason.json", reason(74));
  const RunState failed = state();
  EXPECT_EQ(failed.state, "failed");
  EXPECT_EQ(failed.code, 74);
  EXPECT_EQ(failed.reason, "why");
  EXPECT_EQ(failed.step, 7);
  write("DONE", "torn {");
  EXPECT_EQ(state().state, "failed");
  write("DONE", "{\"step\":100}");
  const RunState done = state();
  EXPECT_EQ(done.state, "finished");
  EXPECT_EQ(done.step, 100);
  EXPECT_EQ(done.reason, "");
  EXPECT_EQ(done.code, 0);
}

// The oldest lines are 100 times slower; the estimate is that of the last ten only.
TEST_F(RunStateTest, TimeLeftFollowsTheLastTenLines) {
  write_config();
  std::string lines;
  for (int step = 1; step <= 12; ++step) {
    const int milliseconds = step <= 2 ? 50000 : 500 + step % 2;
    lines += fmt::format("{{\"step\":{},\"step_ms\":{}}}\n", step, milliseconds);
  }
  write("metrics.jsonl", lines);
  EXPECT_FALSE(state().seconds_left.has_value());  // no rank is at work
  const Locked lock(run_ / ".lock");
  const RunState running = state();
  EXPECT_EQ(running.step, 12);
  EXPECT_EQ(running.steps, 100);
  ASSERT_TRUE(running.step_ms && running.seconds_left);
  EXPECT_DOUBLE_EQ(*running.step_ms, 500.5);
  EXPECT_DOUBLE_EQ(*running.seconds_left, 0.5005 * 88);
  write("metrics.jsonl", "{\"step\":100,\"step_ms\":5}\n");
  EXPECT_FALSE(state().seconds_left.has_value());  // the last step is over
  write("metrics.jsonl", "{\"step\":50}\n");
  EXPECT_FALSE(state().seconds_left.has_value());
}

// A start that was refused has replaced the exit reason, which named the step of the stop.
TEST_F(RunStateTest, TheStepOfTheNewestCheckpointCounts) {
  write("metrics.jsonl", "{\"step\":100}\n");
  make_directories(run_ / "checkpoints/step-00000106");
  EXPECT_EQ(state().step, 100);  // its manifest is missing
  write("checkpoints/step-00000106/manifest.json", "{\"generation\": 0}");
  EXPECT_EQ(state().step, 106);
}

// The working directory of the caller has a checkpoint folder of the same name, of another run.
TEST_F(RunStateTest, ARelativeCheckpointFolderIsThatOfTheRun) {
  const auto save = [&](const std::string& checkpoints) {
    make_directories(run_ / checkpoints);
    write(checkpoints + "/manifest.json", "{\"generation\": 0}");
  };
  const auto step_if_run_dir_is = [&](const std::string& run_dir) {
    write("a/runs/first/config.yaml",
          "model: {preset: tiny-gpt2}\n"
          "data: {train: /nowhere}\n"
          "train: {steps: 100, global_batch: 8}\n"
          "checkpoint: {dir: saved}\n"
          "run: {dir: " +
              run_dir + "}\n");
    return state_of_run("../a/runs/first").step;
  };
  make_directories(run_ / "a/runs/first");
  save("a/saved/step-00000040");
  save("b/saved/step-00000060");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(run_ / "b");
  EXPECT_EQ(step_if_run_dir_is("runs/first"), 40);
  EXPECT_EQ(step_if_run_dir_is("./runs//first/"), 40);
  EXPECT_EQ(step_if_run_dir_is("runs/second"), 0);  // the folder was renamed
  EXPECT_EQ(step_if_run_dir_is("../runs/first"), 0);
  EXPECT_EQ(step_if_run_dir_is((run_ / "a/runs/first").string()), 0);
  std::filesystem::current_path(before);
}

TEST_F(RunStateTest, AFolderThatIsMissingOrClosedIsSaid) {
  const std::filesystem::path missing = run_ / "missing";
  EXPECT_THAT(message_of<NotFound>([&] { (void)state_of_run(missing); }),
              AllOf(HasSubstr(missing.string()), HasSubstr("no such folder")));
  const std::filesystem::path closed = run_ / "closed";
  make_directories(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  const Unprivileged nobody;
  if (!nobody.bound()) {
    GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
  }
  EXPECT_THAT(message_of<PolicyError>([&] { (void)state_of_run(closed); }),
              HasSubstr("Permission denied"));
}

// Adds what all events of a journal have to each of some lines.
std::string of_launch(std::string lines) {
  constexpr std::string_view kMark = "{\"event\"";
  for (std::size_t at = 0; (at = lines.find(kMark, at)) != std::string::npos; at += kMark.size()) {
    lines.insert(at + 1, R"("launch":"a","clock":1,)");
  }
  return lines;
}

TEST_F(RunStateTest, ARefusedStartIsNoFault) {
  write("journal.jsonl",
        of_launch(R"({"event":"attempt_end","attempt":1,"cause":"refused","what":"rank 0","time":20}
{"event":"attempt_end","attempt":1,"cause":"usage","rank0":{"phase":"load"},"time":30}
)"));
  EXPECT_FALSE(state().last_fault.has_value());
  write(
      "journal.jsonl",
      of_launch(R"({"event":"attempt_end","cause":"refused","rank0":{"phase":"train"},"time":9})"));
  EXPECT_TRUE(state().last_fault.has_value());
}

TEST_F(RunStateTest, ADamagedReasonIsNoMissingOne) {
  write("metrics.jsonl", "{\"step\":4,\"time\":1000}\n");
  EXPECT_FALSE(state().exit_reason_is_damaged);
  write("exit_reason.json", "{\"code\": 7");
  EXPECT_TRUE(state().exit_reason_is_damaged);
  EXPECT_EQ(state().state, "interrupted");
}

TEST_F(RunStateTest, AnOlderJournalCallsAnAttemptAGeneration) {
  write("journal.jsonl",
        of_launch(R"({"event":"attempt_end","generation":3,"cause":"hang","time":9})"));
  ASSERT_TRUE(state().last_fault.has_value());
  EXPECT_EQ(state().last_fault->attempt, 3);
}

TEST_F(RunStateTest, TheLossesAreThoseOfTheNewestLine) {
  write("metrics.jsonl",
        "{\"step\":1,\"loss\":5,\"time\":90}\n"
        "{\"step\":2,\"loss\":4,\"loss_mean\":4.5,\"time\":100}\n");
  EXPECT_EQ(state().loss, 4);
  EXPECT_EQ(state().loss_mean, 4.5);
  EXPECT_EQ(state().loss_step, 2);
  EXPECT_EQ(state().updated, 100.0);
  write("metrics.jsonl", "{\"step\":3,\"loss\":4.25}\n");
  EXPECT_EQ(state().loss, 4.25);
  write("metrics.jsonl", "{\"step\":1,\"loss\":5}\n{\"step\":2,\"loss\":null}\n");
  EXPECT_FALSE(state().loss.has_value());
  EXPECT_EQ(state().step, 2);
  write("metrics.jsonl", "{\"step\":2}\n{\"step\":-3}\n");
  EXPECT_EQ(state().step, 2);
}

TEST_F(RunStateTest, TheJournalKnowsJobFaultAndSteps) {
  write("metrics.jsonl", "{\"step\":4,\"time\":1000}\n");
  write("journal.jsonl", of_launch(R"({"event":"begin","slurm_job":"41","time":10}
{"event":"attempt_end","attempt":1,"cause":"hang","what":"rank 3","time":20}
{"event":"begin","slurm_job":"42_1","time":30}
{"event":"status","rank0":{"step":6},"time":40}
{"event":"status","rank0":null,"time":39}
{"event":"attempt_end","attempt":2,"cause":"stopped","what":"SIGTERM","time":50}
{"event":"attempt_end","attempt":3,"cause":"finished","what":"","time":45}
)"));
  RunState now = state();
  EXPECT_EQ(now.job, "42_1");
  EXPECT_EQ(now.step, 6);
  EXPECT_EQ(now.updated, 1000.0);
  ASSERT_TRUE(now.last_fault.has_value());
  EXPECT_EQ(now.last_fault->cause, "hang");
  EXPECT_EQ(now.last_fault->what, "rank 3");
  EXPECT_EQ(now.last_fault->attempt, 1);
  EXPECT_EQ(now.last_fault->time, 20);
  std::filesystem::remove(run_ / "metrics.jsonl");
  now = state();
  EXPECT_EQ(now.updated, 50.0);  // the latest, not the last
  EXPECT_FALSE(now.loss.has_value());
}

// 256 KiB are read from the end. They begin within a line, whose rest would be a valid event.
TEST_F(RunStateTest, ALineThatBeginsBeforeTheTailIsLeftOut) {
  const std::string event =
      "{\"launch\":\"a\",\"time\":1,\"clock\":0,\"event\":\"begin\",\"slurm_job\":\"7\"}\n";
  const std::string padding((256 << 10) - event.size() - 1, ' ');
  write("journal.jsonl", "torn" + event + padding + "\n");
  write(".lock", "");
  EXPECT_EQ(state().job, "");
  write("journal.jsonl", event + padding + "\n");
  EXPECT_EQ(state().job, "7");
}

TEST(RunStateText, SaysWhatIsKnown) {
  EnvironmentVariables variables;
  variables.set("TZ", "UTC0");
  ::tzset();
  RunState state;
  state.state = "interrupted";
  state.step = 12;
  EXPECT_EQ(to_text(state, "/r\x1b[31m\n"),
            "run         /r\\x1b[31m\\n\n"
            "state       interrupted\n"
            "step        12\n");
  state = {.state = "failed",
           .step = 12,
           .steps = 100,
           .seconds_left = 3725,
           .loss = 3,
           .loss_mean = 3.14159265,
           .loss_step = 10,
           .step_ms = 1500,
           .updated = 1e9,
           .job = "42_3",
           .reason = "the disk is full\n  remove \x1b[2J",
           .code = 74,
           .last_fault = RunState::Fault{100, 2, "hang", "rank 3"}};
  EXPECT_EQ(to_text(state, "/r"),
            "run         /r\n"
            "state       failed: the disk is full; remove \\x1b[2J (exit code 74)\n"
            "step        12 of 100\n"
            "time left   1h02m\n"
            "loss        3.1416 (step 10)\n"
            "step time   1.5s\n"
            "updated     2001-09-09 01:46:40\n"
            "Slurm job   42_3\n"
            "last fault  1970-01-01 00:01:40, attempt 2: hang: rank 3\n");
}

TEST(RunStateText, JsonHasEveryFieldAndNullForTheUnknown) {
  RunState state;
  state.state = "running";
  state.step = 12;
  state.loss = std::nan("");
  nlohmann::json document = to_json(state, "/r");
  EXPECT_EQ(document["schema"], "trireme-status-2");
  EXPECT_EQ(document["run"], "/r");
  EXPECT_EQ(document["step"], 12);
  for (const char* name :
       {"seconds_left", "loss", "loss_mean", "loss_step", "step_ms", "updated", "last_fault"}) {
    EXPECT_TRUE(document.contains(name) && document[name].is_null()) << name;
  }
  state.loss = 2.5;
  state.last_fault = RunState::Fault{100, 2, "hang", "rank 3"};
  document = to_json(state, "/r");
  EXPECT_EQ(document["loss"], 2.5);
  const auto fault =
      nlohmann::json::parse(R"({"time": 100.0, "attempt": 2, "cause": "hang", "what": "rank 3"})");
  EXPECT_EQ(document["last_fault"], fault);
}

TEST_F(RunStateTest, StatusPrintsItAndExitsWith0InEveryState) {
  const auto status = [this](const std::vector<std::string>& words) {
    return run_command_line([](CommandLine& app, int&) { add_status_command(app); }, words);
  };
  EXPECT_EQ(status({"status", run_.string()}).code, 66);
  write("exit_reason.json", R"({"code": 74, "kind": "io", "message": "full", "rank": 0,
                                "host": "n", "step": 3, "phase": "train"})");
  write(".lock", "");
  const CommandRun text = status({"status", run_.string()});
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, AllOf(HasSubstr("state       failed: full (exit code 74)\n"),
                              HasSubstr("step        3\n"), Not(HasSubstr("{"))));
  const CommandRun document = status({"status", "--json", run_.string()});
  EXPECT_EQ(document.code, 0);
  EXPECT_EQ(nlohmann::json::parse(document.out).at("code"), 74);
  write("metrics.jsonl", "{\"step\": 1}\ntorn {\n{\"step\": 2}\n{\"st");
  write("journal.jsonl", "7\n{\"event\":\"unknown\"}\n");
  const CommandRun damaged = status({"status", run_.string()});
  EXPECT_EQ(damaged.code, 0);
  EXPECT_EQ(
      damaged.err,
      fmt::format("trireme: {0}/metrics.jsonl: ignoring 1 damaged line (line 2)\n"
                  "trireme: {0}/journal.jsonl: ignoring 2 damaged lines (the first is line 1)\n",
                  run_.string()));
}

}  // namespace
}  // namespace trireme
