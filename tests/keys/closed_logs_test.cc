#include "src/keys/closed_logs.h"

#include <gmock/gmock.h>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/run_text.h"
#include "tests/keys/encrypted_logs.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ClosedLogsTest : public EncryptedLogs {
 protected:
  std::string refusal(const fs::path& file) const {
    return message_of<DataError>([&] { (void)read(file); });
  }
  fs::path record() const { return closed_logs_file(run_, begun_.start.key); }
  static void cut_lines(const fs::path& file, int lines) {
    std::string text = read_file(file);
    for (int i = 0; i < lines; ++i) {
      text.resize(text.rfind('\n', text.size() - 2) + 1);
    }
    write_file_durably(file, text);
  }
};

TEST_F(ClosedLogsTest, EveryCutOfAClosedFileIsFound) {
  append(metrics_, *start(), "one\n");
  append(metrics_, *start(), "two\n");
  append(metrics_, *start(), "three\n");
  close();
  const std::string whole = read_file(metrics_);
  EXPECT_EQ(read(metrics_), "one\ntwo\nthree\n");
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 7) {
    write_file_durably(metrics_, whole.substr(0, bytes));
    EXPECT_THROW((void)read(metrics_), DataError) << bytes;
  }
  // Two whole sections at the end; everything.
  write_file_durably(metrics_, whole.substr(0, whole.find("\nTRIREME") + 1));
  EXPECT_THAT(refusal(metrics_),
              HasSubstr(fmt::format("start 3 of the run left {} bytes here, and {} are left: its "
                                    "end was cut off",
                                    whole.size(), whole.find("\nTRIREME") + 1)));
  write_file_durably(metrics_, "");
  EXPECT_THAT(refusal(metrics_), HasSubstr("and 0 are left"));
  EXPECT_EQ(plain_reader().read(metrics_), "");
}

TEST_F(ClosedLogsTest, LaterStartsMayAppend) {
  append(metrics_, *start(), "one\n");
  close();
  EXPECT_EQ(lack_of_closing_record(run_), "");
  append(metrics_, *start(), "two\n");
  EXPECT_THAT(lack_of_closing_record(run_), HasSubstr("start 2 of the run has left no record"));
  EXPECT_EQ(read(metrics_), "one\ntwo\n");
  // What a start that was killed has appended can be cut off, which the note says.
  cut_lines(metrics_, 3);
  EXPECT_EQ(read(metrics_), "one\n");
  cut_lines(metrics_, 1);
  EXPECT_THAT(refusal(metrics_), HasSubstr("its end was cut off"));
}

TEST_F(ClosedLogsTest, LaterStartsMayWriteAFileAnew) {
  append(metrics_, *start(), "one\ntwo\n");
  close();
  const auto sealer = start();
  write_run_file(metrics_, "one\n", sealer.get());
  EXPECT_EQ(read(metrics_), "one\n");
  close();
  EXPECT_EQ(read(metrics_), "one\n");
}

TEST_F(ClosedLogsTest, AnOlderStateIsFound) {
  append(metrics_, *start(), "one\n");
  close();
  const std::string older = read_file(metrics_);
  const auto sealer = start();
  write_run_file(metrics_, "another text that is longer than the first one\n", sealer.get());
  close();
  write_file_durably(metrics_, older);
  EXPECT_THAT(refusal(metrics_), HasSubstr("its end was cut off"));
  write_run_file(metrics_, "something of this start that is longer than all of them together\n",
                 sealer.get());
  EXPECT_THAT(refusal(metrics_), HasSubstr("another state of the file was put here"));
}

TEST_F(ClosedLogsTest, LogsMayBeRotatedLater) {
  const fs::path log = log_file(run_ / "logs", 2);
  const fs::path older = older_log_file(run_ / "logs", 2);
  append(log, *start(), "one\n");
  close();
  const std::string first = read_file(log);
  const auto rotate_and_append = [&](const RunSealer& sealer, const std::string& text) {
    fs::rename(log, older);
    AppendFile::open_lines(log, sealer.sealer(log), last_line_of(older)).append(text);
  };
  const auto second = start();
  append(log, *second, "two\n");
  rotate_and_append(*second, "three\n");
  EXPECT_EQ(read(older), "one\ntwo\n");
  EXPECT_EQ(read(log), "three\n");
  const std::string kept = read_file(older);
  write_file_durably(older, first.substr(0, first.find('\n') + 1));
  EXPECT_THAT(refusal(older), HasSubstr("its end was cut off"));
  write_file_durably(older, kept);
  rotate_and_append(*second, "four\n");
  EXPECT_EQ(read(older), "three\n") << "what the record names is gone";
  EXPECT_EQ(read(log), "four\n");
  close();
  cut_lines(log, 1);
  EXPECT_THAT(refusal(log), HasSubstr("its end was cut off"));
  fs::remove(log);
  EXPECT_THAT(refusal(older),
              HasSubstr("rank-00002.jsonl is missing, which start 2 of the run has left"));
}

TEST_F(ClosedLogsTest, EveryChangedByteOfTheRecordIsFound) {
  append(metrics_, *start(), "one\n");
  append(log_file(run_ / "logs", 0), *start(), "two\n");
  close();
  const std::string good = read_file(record());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_file_durably(record(), bad);
    EXPECT_THROW((void)read(metrics_), DataError) << at;
  }
  ClosedLogs closed = parse_closed_logs(good, "it");
  ASSERT_EQ(closed.files.size(), 2U);
  closed.files.pop_back();
  write_file_durably(record(), to_text(closed));
  EXPECT_THAT(refusal(metrics_), HasSubstr("changed by someone who does not have the data key"));
  // That of another start, of the same run.
  write_file_durably(record(), good);
  const std::string key = begun_.start.key;
  (void)start();
  write_file_durably(record(), good);
  EXPECT_THAT(refusal(metrics_), HasSubstr("or taken from another start"));
  fs::remove(record());
  EXPECT_EQ(read(metrics_), "one\n");
}

TEST_F(ClosedLogsTest, OnlyFilesOfARunAreListed) {
  append(metrics_, *start(), "one\n");
  fs::create_directories(run_ / "tensorboard");
  fs::copy_file(metrics_, run_ / "tensorboard" / "name with a\nline end");
  fs::create_symlink(metrics_, run_ / "tensorboard" / "link");
  close();
  const ClosedLogs closed = parse_closed_logs(read_file(record()), "it");
  ASSERT_EQ(closed.files.size(), 1U);
  EXPECT_EQ(closed.files[0].name, "metrics.jsonl");
  EXPECT_EQ(closed.files[0].bytes, std::ssize(read_file(metrics_)));
  EXPECT_EQ(to_text(closed), read_file(record()));
}

TEST_F(ClosedLogsTest, OtherTextsAreNoRecords) {
  (void)start();
  ClosedLogs closed{
      std::string(32, 'a'), "logs", {{"f", 1, std::string(64, 'b')}}, std::string(64, 'c')};
  EXPECT_NO_THROW((void)parse_closed_logs(to_text(closed), "it"));
  const auto refused = [](ClosedLogs changed, const auto& change) {
    change(changed);
    return message_of<DataError>([&] { (void)parse_closed_logs(to_text(changed), "it"); });
  };
  EXPECT_THAT(refused(closed, [](ClosedLogs& c) { c.data_key.pop_back(); }),
              HasSubstr("it: data_key or mac"));
  EXPECT_THAT(refused(closed, [](ClosedLogs& c) { c.mac[0] = 'x'; }), HasSubstr("data_key or mac"));
  EXPECT_THAT(refused(closed, [](ClosedLogs& c) { c.files[0].name = "a\n"; }),
              HasSubstr("other characters"));
  EXPECT_THAT(refused(closed, [](ClosedLogs& c) { c.files[0].last = "b"; }),
              HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(refused(closed, [](ClosedLogs& c) { c.files[0].bytes = -1; }), HasSubstr("bytes"));
  EXPECT_THAT(message_of<DataError>([&] {
                (void)parse_closed_logs(read_file(log_key_file(run_, begun_.start.key)), "it");
              }),
              HasSubstr("not a record of closed logs"));
}

}  // namespace
}  // namespace trireme
