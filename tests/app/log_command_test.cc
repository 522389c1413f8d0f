// `trireme log` on runs with plain and with encrypted files.
#include "src/app/run/log_command.h"

#include <gmock/gmock.h>

#include "src/base/log.h"
#include "tests/app/command_run.h"
#include "tests/keys/encrypted_logs.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Words = std::vector<std::string>;

class LogCommand : public EncryptedLogs {
 protected:
  CommandRun print(Words words, bool with_key = true) {
    words.insert(words.begin(), "log");
    if (with_key) {
      words.insert(words.end(), {"--key", uri()});
    }
    return run_command_line(
        [this](CommandLine& app, int&) {
          add_log_command(app, [this]() -> const Access& {
            ++asked_;
            return access_;
          });
        },
        words);
  }
  fs::path log_of(int rank) const { return log_file(run_ / "logs", rank); }

  Access access_;
  int asked_ = 0;
};

TEST_F(LogCommand, PlainFilesArePrintedAsTheyAre) {
  write_named_file(metrics_, "{\"step\": 1}\n");
  write_named_file(log_of(0), "{\"rank\": 0}\n");
  write_named_file(log_of(3), "{\"rank\": 3}\n");
  EXPECT_EQ(print({metrics_.string()}, false).out, "{\"step\": 1}\n");
  EXPECT_EQ(print({run_.string()}, false).out, "{\"rank\": 0}\n") << "the first rank's log";
  EXPECT_EQ(print({run_.string(), "--rank", "3"}, false).out, "{\"rank\": 3}\n");
  EXPECT_EQ(asked_, 0) << "permissions of files decide who reads what is plain";
}

TEST_F(LogCommand, TheOlderPartOfALogComesFirst) {
  write_named_file(older_log_file(run_ / "logs", 0), "older\n");
  write_named_file(log_of(0), "newer\n");
  EXPECT_EQ(print({run_.string()}, false).out, "older\nnewer\n");
  fs::remove(log_of(0));
  EXPECT_EQ(print({run_.string()}, false).out, "older\n");
}

TEST_F(LogCommand, WhatIsMissingIsNamed) {
  const CommandRun no_log = print({run_.string()}, false);
  EXPECT_EQ(no_log.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(no_log.err, AllOf(HasSubstr(log_of(0).string()), HasSubstr("give the run.dir of")));
  const CommandRun no_file = print({(run_ / "absent.jsonl").string()}, false);
  EXPECT_EQ(no_file.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(no_file.err, HasSubstr("absent.jsonl"));
  const CommandRun no_rank = print({run_.string(), "--rank", "-1"}, false);
  EXPECT_EQ(no_rank.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(no_rank.err, HasSubstr("--rank"));
}

TEST_F(LogCommand, OpensEncryptedFilesWithTheKey) {
  append(metrics_, *start(), "{\"step\": 1}\n");
  close();
  const CommandRun run = print({metrics_.string()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "{\"step\": 1}\n");
  EXPECT_THAT(run.err, IsEmpty());
  EXPECT_GT(asked_, 0) << "the policy is asked before anything is decrypted";
  EXPECT_THAT(read_file(metrics_), Not(HasSubstr("step"))) << "the file stays encrypted";
}

TEST_F(LogCommand, AnotherKeyOpensNothing) {
  append(metrics_, *start(), "{\"step\": 1}\n");
  close();
  const CommandRun run = print({metrics_.string(), "--key", uri("other.key")}, false);
  EXPECT_NE(run.code, 0);
  EXPECT_THAT(run.out, IsEmpty());
}

TEST_F(LogCommand, SaysWhatAKilledProcessHasLeft) {
  const auto sealer = start();
  {
    AppendFile file = AppendFile::open_lines(metrics_, sealer->sealer(metrics_));
    file.append("{\"step\": 1}\n");
  }
  const std::string whole = read_file(metrics_);
  // The end of the section is the last line.
  write_named_file(metrics_, whole.substr(0, whole.rfind('\n', whole.size() - 2) + 1));
  const CommandRun run = print({metrics_.string()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "{\"step\": 1}\n");
  EXPECT_THAT(run.err, AllOf(HasSubstr("1 section has no end"),
                             HasSubstr("start 1 of the run has left no record")));
}

TEST_F(LogCommand, AChangedLinePrintsNothing) {
  append(metrics_, *start(), "{\"step\": 1}\n");
  close();
  std::string text = read_file(metrics_);
  const std::size_t line = text.find('\n') + 1;  // the first record
  const std::size_t at = text.find('\n', line) - 1;
  text[at] = text[at] == '0' ? '1' : '0';
  write_named_file(metrics_, text);
  const CommandRun run = print({metrics_.string()});
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(run.out, IsEmpty());
  EXPECT_THAT(run.err, HasSubstr("metrics.jsonl"));
}

}  // namespace
}  // namespace trireme
