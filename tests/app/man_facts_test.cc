#include "src/app/site/man_facts.h"

#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

using testing::Contains;
using testing::Not;

std::vector<std::string> names_of(const std::vector<ManEntry>& entries) {
  std::vector<std::string> names;
  for (const ManEntry& entry : entries) {
    names.push_back(entry.name);
  }
  return names;
}

std::string document(const std::string& name) {
  return read_file(std::filesystem::path(TRIREME_SOURCE_DIR) / "docs" / name);
}

// The rows of the document begin with "| 65 |".
TEST(ManFacts, ExitStatusesAreThoseOfTheDocument) {
  std::vector<std::string> documented;
  std::istringstream lines(document("exit-codes.md"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("| ") && line.find_first_of("0123456789") == 2) {
      documented.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
  }
  ASSERT_EQ(documented.size(), 13U);
  EXPECT_EQ(names_of(exit_statuses()), documented);
  std::map<std::string, std::string> texts;
  for (const ManEntry& status : exit_statuses()) {
    texts[status.name] = status.text;
  }
  const std::map<ExitCode, const char*> words = {{ExitCode::usage, "usage"},
                                                 {ExitCode::diverged, "diverged"},
                                                 {ExitCode::bad_data, "data"},
                                                 {ExitCode::not_found, "not found"},
                                                 {ExitCode::io, "I/O"},
                                                 {ExitCode::requeue, "start it again"},
                                                 {ExitCode::device, "memory"},
                                                 {ExitCode::refused, "Refused"},
                                                 {ExitCode::hang, "hung"},
                                                 {ExitCode::no_progress, "No progress in 3"},
                                                 {ExitCode::below_threshold, "threshold"}};
  for (const auto& [code, word] : words) {
    EXPECT_THAT(texts[fmt::format("{}", static_cast<int>(code))], testing::HasSubstr(word));
  }
}

TEST(ManFacts, APageHasTheVariablesAndFilesOfItsCommand) {
  struct Case {
    const char* command;
    std::vector<const char*> variables;
    std::vector<const char*> other_variables;
    std::vector<const char*> files;
    std::vector<const char*> other_files;
  };
  const std::vector<Case> cases = {
      {"",
       {"TRIREME_KERNELS", "NO_COLOR", "SOURCE_DATE_EPOCH"},
       {"TMPDIR", "SLURM_*"},
       {"/etc/trireme/*.yaml"},
       {"RUN/DONE"}},
      {"train",
       {"TRIREME_MTBF_HOURS", "TRIREME_NODE_DIR", "SLURM_*", "CLICOLOR_FORCE"},
       {"TMPDIR", "SOURCE_DATE_EPOCH"},
       {"RUN/DONE", "RUN/metrics.jsonl", "RUN/exit_reason.json"},
       {"RUN/journal.jsonl", "DATASET/manifest.json"}},
      {"launch",
       {"SLURM_*", "NO_COLOR"},
       {"TRIREME_KERNELS"},
       {"RUN/journal.jsonl", "RUN/DONE"},
       {"RUN/metrics.jsonl"}},
      {"eval",
       {"TRIREME_KERNELS"},
       {"TRIREME_NODE_DIR"},
       {"RUN/checkpoints/step-NNNNNNNN/"},
       {"RUN/DONE"}},
      {"health", {"TMPDIR"}, {"TRIREME_SITE_DIR"}, {}, {"RUN/DONE"}},
      {"data", {"NO_COLOR"}, {"TRIREME_KERNELS"}, {"DATASET/shards/NNNNN.h5"}, {"RUN/DONE"}}};
  for (const Case& each : cases) {
    const auto variables = names_of(environment_of(each.command));
    const auto files = names_of(files_of(each.command));
    for (const char* name : each.variables) {
      EXPECT_THAT(variables, Contains(name)) << each.command;
    }
    for (const char* name : each.other_variables) {
      EXPECT_THAT(variables, Not(Contains(name))) << each.command;
    }
    for (const char* name : each.files) {
      EXPECT_THAT(files, Contains(name)) << each.command;
    }
    for (const char* name : each.other_files) {
      EXPECT_THAT(files, Not(Contains(name))) << each.command;
    }
  }
}

}  // namespace
}  // namespace trireme
