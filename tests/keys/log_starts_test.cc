#include "src/keys/log_starts.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "src/base/error.h"
#include "tests/keys/encrypted_logs.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(LogStart, HasOneForm) {
  const std::string run(32, 'a');
  const LogStart start = parse_log_contents("logs " + run + " 12", "key");
  EXPECT_EQ(start.run, run);
  EXPECT_EQ(start.number, 12);
  EXPECT_EQ(start.key, "key");
  EXPECT_EQ(contents_of(start), "logs " + run + " 12");
  EXPECT_EQ(contents_of(parse_log_contents("logs", "key")), "logs");
  const std::string label = R"({"classification":"secret"})";
  EXPECT_EQ(parse_log_contents("logs " + run + " 12 " + label, "key").label, label);
  EXPECT_EQ(contents_of({"key", run, 12, label}), "logs " + run + " 12 " + label);
  for (const std::string& bad :
       {std::string(), std::string("log"), std::string("logs "), "logs " + run, "logs " + run + " ",
        "logs " + run + " 0", "logs " + run + " 01", "logs " + run + " -1", "logs " + run + " 1 ",
        "logs " + run + " 1 {", "logs " + run + " 1 {}}\n{}", "logs " + run + " 1 x",
        "logs " + run + " " + label, "logs " + run + " 1234567890", "logs " + run + "a 1",
        "logs " + run.substr(1) + "A 1", "logs " + run.substr(1) + " 1", "sha256:" + run + run,
        std::string(" logs")}) {
    EXPECT_THROW((void)parse_log_contents(bad, "key"), DataError) << bad;
  }
}

using LogStartsOfRuns = EncryptedLogs;

TEST_F(LogStartsOfRuns, AreCountedAndShareAnIdentity) {
  EXPECT_TRUE(list_log_starts(run_).all.empty());
  (void)start();
  const LogStart first = begun_.start;
  EXPECT_EQ(first.number, 1);
  EXPECT_EQ(first.run.size(), 32U);
  fs::create_directories(run_ / kLogKeysFolder / "of-a-start-that-was-killed");
  (void)start();
  EXPECT_EQ(begun_.start.number, 2);
  EXPECT_EQ(begun_.start.run, first.run);
  const LogStarts starts = list_log_starts(run_);
  ASSERT_EQ(starts.all.size(), 2U);
  EXPECT_EQ(starts.all[0].key, first.key);
  EXPECT_EQ(starts.damage, "");
  (void)start(folder_.path() / "another");
  EXPECT_NE(begun_.start.run, first.run);
}

TEST_F(LogStartsOfRuns, FilesOfAnotherRunAreRefusedByName) {
  append(metrics_, *start(), "{\"step\": 1, \"loss\": 7}\n");
  const std::string run = begun_.start.run;
  const fs::path other = folder_.path() / "other";
  append(other / "metrics.jsonl", *start(other), "{\"step\": 1, \"loss\": 3}\n");
  // The same site has made both, so that its key opens both.
  const std::string key = begun_.start.key;
  fs::copy(other / kLogKeysFolder / key, run_ / kLogKeysFolder / key, fs::copy_options::recursive);
  fs::copy_file(other / "metrics.jsonl", metrics_, fs::copy_options::overwrite_existing);
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
              AllOf(HasSubstr("log-keys holds keys of several runs"),
                    HasSubstr("of the run " + run.substr(0, 8)),
                    HasSubstr("of the run " + begun_.start.run.substr(0, 8))));
  EXPECT_THAT(message_of<DataError>([&] { (void)start(); }),
              HasSubstr("holds keys of several runs"));
  fs::remove_all(run_ / kLogKeysFolder / key);
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }), HasSubstr("is missing"));
}

TEST_F(LogStartsOfRuns, NamesCannotBeChangedWithoutTheKey) {
  append(metrics_, *start(), "one\n");
  const fs::path file = log_key_file(run_, begun_.start.key);
  const WrappedKeys good = parse_wrapped_keys(read_file(file), "it");
  for (const std::string& contents : {"logs " + begun_.start.run + " 2",
                                      "logs " + std::string(32, '0') + " 1", std::string("logs")}) {
    WrappedKeys keys = good;
    keys.contents = contents;
    write_file_durably(file, to_text(keys));
    EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
                HasSubstr("changed by someone who does not have the data key"))
        << contents;
  }
}

TEST_F(LogStartsOfRuns, LabelsAreBoundToTheKeyAndAskedForAtTheRealPlace) {
  const auto first = start();
  const std::string secret = R"({"classification":"secret"})";
  label_logs(run_, begun_.start, secret, key_->key);
  append(metrics_, *first, "one\n");
  append(metrics_, *start(), "two\n");
  EXPECT_EQ(begun_.start.label, secret);  // until it is known what this start reads
  label_logs(run_, begun_.start, "", key_->key);
  const fs::path other = folder_.path() / "other";
  fs::create_directories(other);
  for (const char* name : {kLogKeysFolder, "metrics.jsonl"}) {
    fs::create_symlink(run_ / name, other / name);
  }
  std::vector<std::pair<fs::path, std::string>> asked;
  const KeyedTextReader reader(
      [this] { return std::vector<std::string>{uri()}; },
      [&](const fs::path& folder, const std::string& label) { asked.emplace_back(folder, label); });
  EXPECT_EQ(reader.read(other / "metrics.jsonl"), "one\ntwo\n");
  EXPECT_EQ(reader.read(other / "metrics.jsonl"), "one\ntwo\n");
  const fs::path real = fs::canonical(run_);
  EXPECT_EQ(asked, (std::vector<std::pair<fs::path, std::string>>{{real, secret}, {real, ""}}));
}

TEST_F(LogStartsOfRuns, RefusedLogsAskForNoKey) {
  append(metrics_, *start(), "one\n");
  bool asked_for_keys = false;
  const KeyedTextReader reader(
      [&] {
        asked_for_keys = true;
        return std::vector<std::string>{uri()};
      },
      [](const fs::path&, const std::string&) { throw PolicyError("no"); });
  EXPECT_THROW((void)reader.read(metrics_), PolicyError);
  EXPECT_FALSE(asked_for_keys);
}

TEST_F(LogStartsOfRuns, LabelsCannotBeChangedWithoutTheKey) {
  const auto sealer = start();
  label_logs(run_, begun_.start, R"({"classification":"secret"})", key_->key);
  append(metrics_, *sealer, "one\n");
  const fs::path file = log_key_file(run_, begun_.start.key);
  const WrappedKeys good = parse_wrapped_keys(read_file(file), "it");
  for (const std::string& label : {std::string(), std::string(R"({"classification":"public"})")}) {
    WrappedKeys keys = good;
    LogStart other = begun_.start;
    other.label = label;
    keys.contents = contents_of(other);
    write_file_durably(file, to_text(keys));
    EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
                HasSubstr("changed by someone who does not have the data key"))
        << label;
    EXPECT_THROW(label_logs(run_, begun_.start, "{}", key_->key), DataError);
  }
}

TEST_F(LogStartsOfRuns, DamageIsFoundBeforeAnythingIsWritten) {
  (void)start();
  const fs::path file = log_key_file(run_, begun_.start.key);
  write_file_durably(file, read_file(file).substr(1));
  EXPECT_THAT(message_of<DataError>([&] { (void)start(); }),
              AllOf(HasSubstr(file.string()), HasSubstr("restore the file")));
  EXPECT_EQ(std::distance(fs::directory_iterator(run_ / kLogKeysFolder), fs::directory_iterator()),
            1);
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_THAT(message_of<DataError>([&] { (void)start(); }),
              AllOf(HasSubstr(file.string()), HasSubstr("is not a file")));
}

// Those that an earlier version of the program has begun go on as they began.
TEST_F(LogStartsOfRuns, RunsWithoutAnIdentityStayReadable) {
  append(metrics_, *start(), "one\n");
  const fs::path file = log_key_file(run_, begun_.start.key);
  WrappedKeys keys = parse_wrapped_keys(read_file(file), "it");
  keys.contents = "logs";
  keys.sign(key_->key);
  write_file_durably(file, to_text(keys));
  EXPECT_EQ(read(metrics_), "one\n");
  append(metrics_, *start(), "two\n");
  EXPECT_EQ(begun_.start.run, "");
  EXPECT_EQ(read(metrics_), "one\ntwo\n");
  EXPECT_EQ(lack_of_closing_record(run_), "");
}

}  // namespace
}  // namespace trireme
