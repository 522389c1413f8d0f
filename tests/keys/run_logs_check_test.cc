#include "src/keys/run_logs_check.h"

#include <functional>

#include <gmock/gmock.h>

#include "src/base/run_text.h"
#include "src/keys/sealed_form.h"
#include "tests/keys/encrypted_logs.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;

// A run of two starts: the first was killed, the second has ended in good order.
class RunLogs : public EncryptedLogs {
 protected:
  RunLogs() {
    append(metrics_, *start(), "one\n");
    first_ = begun_.start;
    {
      AppendFile file = AppendFile::open_lines(metrics_, start()->sealer(metrics_));
      for (const char* line : {"two\n", "three\n", "four\n"}) {
        file.append(line);
      }
    }
    append(log_, *sealer_of_start(), "said\n");
    close();
  }
  std::shared_ptr<const RunSealer> sealer_of_start() const {
    return std::make_shared<const LogSealer>(run_,
                                             std::shared_ptr<const DataKey>(key_, &key_->key));
  }
  RunLogsCheck unopened() const { return check_run_logs(run_, nullptr).value(); }
  RunLogsCheck opened(const char* key = "site.key") const {
    const KeyRing ring({uri(key)});
    const KeyedTextReader reader(ring);
    return check_run_logs(run_, &reader).value();
  }
  // Expects a fault with these words, with keys and without.
  void expect_fault(const std::string& words, ExitCode code = ExitCode::bad_data) const {
    const auto fault =
        Contains(AllOf(Field(&LogFault::code, code), Field(&LogFault::what, HasSubstr(words))));
    EXPECT_THAT(unopened().faults, fault);
    EXPECT_THAT(opened().faults, fault);
  }
  // Expects that only the keys show what was done.
  void expect_fault_with_keys(const std::string& words) const {
    EXPECT_THAT(unopened().faults, IsEmpty());
    EXPECT_THAT(opened().faults, Contains(Field(&LogFault::what, HasSubstr(words))));
  }
  // Changes a file for the time in which `then` runs.
  static void with(const fs::path& file, const std::string& contents,
                   const std::function<void()>& then) {
    const std::string before = read_file(file);
    write_file_durably(file, contents);
    then();
    write_file_durably(file, before);
  }
  static std::vector<std::string> lines_of(const fs::path& file) {
    std::vector<std::string> lines;
    std::string text = read_file(file);
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      lines.push_back(text.substr(0, end + 1));
      text.erase(0, end + 1);
    }
    return lines;
  }
  static std::string without(std::vector<std::string> lines, std::size_t number) {
    lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(number));
    std::string text;
    for (const std::string& line : lines) {
      text += line;
    }
    return text;
  }

  const fs::path log_ = run_ / "logs/rank-00000.jsonl";
  LogStart first_;
};

TEST_F(RunLogs, AreWhole) {
  for (const RunLogsCheck& check : {unopened(), opened()}) {
    EXPECT_THAT(check.faults, IsEmpty());
    EXPECT_EQ(check.files, 2);
    EXPECT_EQ(check.sections, 3);
    EXPECT_EQ(check.unfinished, 0);
    EXPECT_EQ(check.last_closed, 2);
    EXPECT_EQ(check.closed_files, 2);
    EXPECT_EQ(check.starts.all.size(), 2U);
    EXPECT_EQ(check.lack, "");
  }
}

TEST_F(RunLogs, ThatArePlainAreNotChecked) {
  EXPECT_FALSE(check_run_logs(folder_.path(), nullptr));
  fs::remove_all(run_ / kLogKeysFolder);
  expect_fault("holds encrypted files, but no folder log-keys");
}

TEST_F(RunLogs, WithoutLinesAreFound) {
  const std::vector<std::string> lines = lines_of(metrics_);
  ASSERT_EQ(lines.size(), 8U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    with(metrics_, without(lines, i), [&] {
      EXPECT_FALSE(unopened().faults.empty()) << i;
      EXPECT_FALSE(opened().faults.empty()) << i;
    });
  }
  with(metrics_, without(lines, 0), [&] { expect_fault("record stands in no section"); });
  with(metrics_, lines[0] + lines[1] + lines[2], [&] { expect_fault("its end was cut off"); });
  with(metrics_, "", [&] { expect_fault("and 0 are left: its end was cut off"); });
  fs::remove(metrics_);
  expect_fault("metrics.jsonl is gone, which start 2 of the run has left", ExitCode::not_found);
}

TEST_F(RunLogs, WithOtherLinesAreFound) {
  const std::vector<std::string> lines = lines_of(metrics_);
  const std::string whole = read_file(metrics_);
  with(metrics_, whole + "plain\n", [&] { expect_fault("somebody else wrote it"); });
  with(metrics_, whole + lines[4], [&] { expect_fault("follows the end of its section"); });
  with(metrics_, whole + lines[3],
       [&] { expect_fault("this section does not follow the line before it"); });
  with(metrics_, "plain\n", [&] { expect_fault("is not encrypted, although its run"); });
  with(metrics_, read_file(log_), [&] {
    EXPECT_FALSE(unopened().faults.empty());
    EXPECT_FALSE(opened().faults.empty());
  });
}

// Nothing but a key tells one encrypted line from another.
TEST_F(RunLogs, WithChangedRecordsAreFoundWithKeys) {
  std::string text = read_file(metrics_);
  const std::vector<std::string> lines = lines_of(metrics_);
  const std::size_t record = lines[0].size() + lines[1].size() + lines[2].size() + lines[3].size();
  text[record] = text[record] == 'A' ? 'B' : 'A';
  with(metrics_, text, [&] { expect_fault_with_keys("line 5: this record was changed"); });
}

TEST_F(RunLogs, InPlaceOfOthersAreFound) {
  const fs::path target = folder_.path() / "elsewhere";
  fs::rename(metrics_, target);
  fs::create_symlink(target, metrics_);
  expect_fault("metrics.jsonl is no file");
  fs::remove(metrics_);
  fs::create_directory(metrics_);
  expect_fault("metrics.jsonl is no file");
}

TEST_F(RunLogs, OfAnotherRunAreFound) {
  const fs::path other = folder_.path() / "other";
  fs::create_directories(other);
  append(other / "metrics.jsonl", *start(other), "x\n");
  const std::string key = begun_.start.key;
  with(metrics_, read_file(other / "metrics.jsonl"), [&] {
    expect_fault("the file comes from another run");
    fs::copy(other / kLogKeysFolder / key, run_ / kLogKeysFolder / key);
    expect_fault("holds keys of several runs");
  });
}

TEST_F(RunLogs, WithChangedRecordsOfTheirEndAreFound) {
  const fs::path record = closed_logs_file(run_, begun_.start.key);
  const std::string whole = read_file(record);
  for (std::size_t at = 0; at < whole.size(); at += 11) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    with(record, changed, [&] {
      EXPECT_FALSE(unopened().faults.empty()) << at;
      EXPECT_FALSE(opened().faults.empty()) << at;
    });
  }
  // Somebody without the key cuts the file and fits the record.
  const std::vector<std::string> lines = lines_of(metrics_);
  const std::string cut = lines[0] + lines[1] + lines[2];
  ClosedLogs closed = parse_closed_logs(whole, "record");
  for (ClosedFile& file : closed.files) {
    if (file.name == "metrics.jsonl") {
      file.bytes = std::ssize(cut);
      file.last = digest_of_line(lines[2].substr(0, lines[2].size() - 1));
    }
  }
  with(record, to_text(closed), [&] {
    with(metrics_, cut,
         [&] { expect_fault_with_keys("changed by someone who does not have the data key"); });
  });
  fs::remove(record);
  EXPECT_THAT(unopened().lack, HasSubstr("start 2 of the run has left no record"));
  EXPECT_THAT(opened().faults, IsEmpty());
}

TEST_F(RunLogs, OfAnotherStartsRecordAreFound) {
  fs::copy(closed_logs_file(run_, begun_.start.key), closed_logs_file(run_, first_.key));
  expect_fault("taken from another start");
}

TEST_F(RunLogs, WithoutKeysOfAStartAreFound) {
  fs::remove_all(run_ / kLogKeysFolder / first_.key);
  expect_fault("the key of start 1 is gone", ExitCode::not_found);
  expect_fault("keys.json is missing");
}

TEST_F(RunLogs, WithTwoKeysOfAStartAreFound) {
  const fs::path keys = run_ / kLogKeysFolder;
  fs::copy(keys / first_.key, keys / std::string(32, 'a'));
  expect_fault("two keys belong to start 1");
  expect_fault("holds another key than that of its folder");
}

TEST_F(RunLogs, WhoseKeyWasDestroyedAreFound) {
  WrappedKeys keys = parse_wrapped_keys(read_file(log_key_file(run_, first_.key)), "keys");
  keys.recipients.clear();
  write_file_durably(log_key_file(run_, first_.key), to_text(keys));
  expect_fault("the key was destroyed");
}

TEST_F(RunLogs, NeedTheirKey) {
  EXPECT_THAT(opened("other.key").faults,
              Contains(AllOf(Field(&LogFault::code, ExitCode::refused),
                             Field(&LogFault::what, HasSubstr("encrypted for file")))));
}

TEST_F(RunLogs, MayLackTracesThatALaterStartHasRemoved) {
  const fs::path trace = run_ / "trace/rank-00001.json";
  fs::create_directories(trace.parent_path());
  write_run_file(trace, "[]", sealer_of_start().get());
  close();
  EXPECT_THAT(opened().faults, IsEmpty());
  fs::remove(trace);
  expect_fault("rank-00001.json is gone", ExitCode::not_found);
  (void)start();
  EXPECT_THAT(unopened().faults, IsEmpty());
  EXPECT_THAT(opened().faults, IsEmpty());
}

TEST_F(RunLogs, OfALiveRunHaveNoFault) {
  append(metrics_, *start(), "five\n");
  const RunLogsCheck check = opened();
  EXPECT_THAT(check.faults, IsEmpty());
  EXPECT_EQ(check.last_closed, 2);
  EXPECT_THAT(check.lack, HasSubstr("start 3 of the run has left no record"));
}

TEST_F(RunLogs, HaveTheFormOfWhatOpens) {
  const SealedForm form = read_sealed_form(read_file(metrics_), "f");
  EXPECT_THAT(form.keys, testing::UnorderedElementsAre(first_.key, begun_.start.key));
  EXPECT_EQ(form.first_key, first_.key);
  EXPECT_EQ(form.previous, std::string(64, '0'));
  EXPECT_EQ(form.sections, 2);
  std::string torn = read_file(metrics_);
  torn.resize(torn.rfind('\n', torn.size() - 2) + 1);
  EXPECT_EQ(read_sealed_form(torn + "half a li", "f").unfinished, 1);
  for (const std::string text : {"AAAA\n", "TRIREME-SEALED-2 a b c d\n", "TRIREME-SEALED-1 a\n"}) {
    EXPECT_THAT(message_of<DataError>([&] { (void)read_sealed_form(text, "f"); }),
                HasSubstr("f, line 1: "));
  }
}

}  // namespace
}  // namespace trireme
