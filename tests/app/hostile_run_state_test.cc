#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/app/launch/run_state.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

void write(const TempFolder& folder, const char* name, const std::string& text) {
  write_file_durably(folder.path() / name, text);
}

TEST(HostileRunState, LeavesOutNumbersThatAreImpossible) {
  const TempFolder folder;
  write(folder, "metrics.jsonl",
        R"({"step": 1e300, "loss": 1})"
        "\n"
        R"({"step": 7, "loss": 2.5, "step_ms": -4, "time": 1e300})"
        "\n");
  write(folder, "journal.jsonl",
        R"({"launch": "a", "clock": 1, "event": "attempt_end", "cause": "hang", "time": -1e300})"
        "\n");
  const RunState state = state_of_run(folder.path());
  EXPECT_EQ(state.step, 7);
  EXPECT_EQ(state.damaged_metrics.count, 1);
  EXPECT_EQ(state.loss, 2.5);
  EXPECT_EQ(state.step_ms, std::nullopt);
  EXPECT_EQ(state.updated, std::nullopt);
  EXPECT_EQ(state.damaged_journal.count, 1);
  EXPECT_FALSE(state.last_fault);
}

TEST(HostileRunState, JudgesDoneAsAStartDoes) {
  const TempFolder folder;
  write(folder, "metrics.jsonl", "{\"step\": 3}\n");
  write(folder, "DONE", R"({"step": 12})");
  EXPECT_EQ(state_of_run(folder.path()).state, "finished");
  EXPECT_EQ(state_of_run(folder.path()).step, 12);
  for (const char* damaged : {"", "[]", R"({"step":1e3})", R"({"step":-5})"}) {
    write(folder, "DONE", damaged);
    const RunState state = state_of_run(folder.path());
    EXPECT_EQ(state.state, "failed") << damaged;
    EXPECT_EQ(state.code, 65) << damaged;
    EXPECT_THAT(state.reason, HasSubstr("DONE is damaged")) << damaged;
  }
}

}  // namespace
}  // namespace trireme
