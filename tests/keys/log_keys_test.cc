#include "src/keys/log_keys.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>
#include <sys/resource.h>

#include "mpi/watch/flight_recorder.h"
#include "src/base/error.h"
#include "src/base/json_lines.h"
#include "src/base/log.h"
#include "src/keys/revoked_keys.h"
#include "tests/keys/encrypted_logs.h"
#include "tests/support/environment_variables.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST_F(EncryptedLogs, SeveralStartsAppendToOneFile) {
  append(metrics_, *start(), "{\"step\": 1}\n");
  append(metrics_, *start(), "{\"step\": 2}\n");
  EXPECT_EQ(read(metrics_), "{\"step\": 1}\n{\"step\": 2}\n");
  const KeyedTextReader reader([this] { return std::vector<std::string>{uri()}; });
  EXPECT_EQ(last_json_lines(metrics_, reader).objects.size(), 2U);
  EXPECT_EQ(last_json_lines(metrics_, reader, 15).objects.size(), 1U);
  EXPECT_THAT(all_bytes(run_), Not(HasSubstr("step")));
}

TEST_F(EncryptedLogs, WhatAKilledProcessLeavesIsReadAndContinued) {
  const auto sealer = start();
  const std::unique_ptr<TextSealer> killed = sealer->sealer(metrics_);
  std::ofstream(metrics_) << killed->begin("") << killed->seal("one\n")
                          << killed->seal("torn\n").substr(0, 20);
  EXPECT_EQ(read(metrics_), "one\n");
  append(metrics_, *start(), "two\n");
  EXPECT_EQ(read(metrics_), "one\ntwo\n");
  const KeyedTextReader reader([this] { return std::vector<std::string>{uri()}; });
  const OpenedText opened = reader.open_sections(read_file(metrics_), metrics_);
  EXPECT_EQ(opened.sections, 2);
  EXPECT_EQ(opened.unfinished, 1);
}

TEST_F(EncryptedLogs, ALogWaitsForItsKeysAndRotates) {
  const fs::path current = log_file(run_ / "logs", 3);
  const fs::path older = older_log_file(run_ / "logs", 3);
  {
    Log log({.rank = 3,
             .terminal_level = LogLevel::error,
             .folder = run_ / "logs",
             .rotate_bytes = 2000,
             .waits_for_keys = true});
    log.info("canary before the keys");
    EXPECT_FALSE(fs::exists(current));
    log.write_encrypted(start());
    EXPECT_THAT(read(current), HasSubstr("canary before the keys"));
    for (int i = 0; !fs::exists(older); ++i) {
      log.info("canary " + std::to_string(i));
    }
    log.info("canary at last");
  }
  EXPECT_THAT(read(older), HasSubstr("\"event\":\"start\""));
  EXPECT_THAT(read(current), HasSubstr("canary at last"));
  EXPECT_THAT(all_bytes(run_), Not(HasSubstr("canary")));
  {
    Log log({.rank = 3,
             .terminal_level = LogLevel::error,
             .folder = run_ / "logs",
             .waits_for_keys = true});
    log.write_encrypted(start());
  }
  EXPECT_THAT(read(current), HasSubstr("canary at last"));
  // The log that follows must be that which follows.
  const std::string kept = read_file(older);
  fs::remove(older);
  EXPECT_THAT(message_of<DataError>([&] { (void)read(current); }),
              HasSubstr("the first section does not follow the beginning of a file"));
  write_file_durably(older, kept.substr(0, kept.rfind('\n', kept.size() - 2) + 1));
  EXPECT_THAT(message_of<DataError>([&] { (void)read(current); }),
              HasSubstr("the first section does not follow the end of"));
  EXPECT_THAT(read(older), HasSubstr("start")) << "an end cut off is not found by itself";
}

TEST_F(EncryptedLogs, DumpsOfFlightRecordersAreEncrypted) {
  FlightRecorder recorder(3, "canary");
  recorder.set_dump_folder(run_ / "logs", start());
  recorder.dump_in_background("canary");
  ASSERT_TRUE(recorder.wait_for_dump(std::chrono::seconds(60)));
  EXPECT_THAT(read(run_ / "logs" / "flight-rank-00003.jsonl"), HasSubstr("\"why\":\"canary\""));
  EXPECT_THAT(all_bytes(run_), Not(HasSubstr("canary")));
}

TEST_F(EncryptedLogs, KeysAreNeeded) {
  append(metrics_, *start(), "one\n");
  EXPECT_THAT(message_of<PolicyError>([&] { (void)read(metrics_, "other.key"); }),
              HasSubstr("this is encrypted for file"));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)plain_reader().read(metrics_); }),
              HasSubstr("is encrypted, and no key was given"));
  EnvironmentVariables site;
  site.set("TRIREME_SITE_DIR", folder_.path().string());
  std::ofstream(folder_.path() / kRevokedKeysName)
      << KeyFile::load(folder_.path() / "site.key")->id() << " stolen\n";
  EXPECT_THAT(message_of<PolicyError>([&] { (void)read(metrics_); }),
              HasSubstr("is revoked (stolen)"));
}

TEST_F(EncryptedLogs, WrappedKeysThatWereChangedOrRemovedAreFound) {
  append(metrics_, *start(), "one\n");
  const std::string id = read_file(metrics_).substr(std::string("TRIREME-SEALED-1 ").size(), 32);
  const fs::path file = log_key_file(run_, id);
  const std::string kept = read_file(file);
  fs::remove(file);
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }), HasSubstr("is missing"));
  WrappedKeys keys = parse_wrapped_keys(kept, "it");
  keys.recipients.clear();
  write_file_durably(file, to_text(keys));
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
              testing::AllOf(HasSubstr("was destroyed"),
                             HasSubstr("if nobody has destroyed the key, restore keys.json")));
  keys = parse_wrapped_keys(kept, "it");
  keys.recipients.front().name = "somebody";
  write_file_durably(file, to_text(keys));
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
              HasSubstr("changed by someone who does not have the data key"));
  const fs::path other = folder_.path() / "other-run";
  fs::create_directories(other);
  append(other / "metrics.jsonl", *start(other), "one\n");
  for (const fs::directory_entry& entry : fs::directory_iterator(other / kLogKeysFolder)) {
    write_file_durably(file, read_file(entry.path() / "keys.json"));
  }
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
              HasSubstr("holds another key than that of its folder"));
  fs::copy_file(other / "metrics.jsonl", metrics_, fs::copy_options::overwrite_existing);
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
              HasSubstr("or the file comes from another run"));
  fs::copy_file(metrics_, folder_.path() / "alone");
  EXPECT_THAT(message_of<DataError>([&] { (void)read(folder_.path() / "alone"); }),
              HasSubstr("leave it in its run's folder"));
}

TEST_F(EncryptedLogs, NoStartAppendsToFilesWhoseKeysWereRemoved) {
  append(metrics_, *start(), "one\n");
  const std::string before = read_file(metrics_);
  fs::remove_all(run_ / kLogKeysFolder);
  EXPECT_THAT(message_of<DataError>([&] { (void)start(); }),
              AllOf(HasSubstr("log-keys is missing"), HasSubstr("remove metrics.jsonl")));
  EXPECT_THAT(message_of<PolicyError>([&] { check_files_are_plain(run_); }),
              HasSubstr("metrics.jsonl is encrypted), but encryption.logs is off"));
  EXPECT_EQ(read_file(metrics_), before);
  fs::remove(metrics_);
  (void)start();
}

TEST_F(EncryptedLogs, FilesTakeNoOthersPlace) {
  const auto sealer = start();
  append(metrics_, *sealer, "metrics\n");
  const fs::path log = log_file(run_ / "logs", 0);
  append(log, *sealer, "log\n");
  fs::copy_file(log, log_file(run_ / "logs", 1));
  EXPECT_THAT(
      message_of<DataError>([&] { (void)read(log_file(run_ / "logs", 1)); }),
      HasSubstr("rank-00001.jsonl, line 1: the beginning of a section was changed, or comes "
                "from another file"));
  // Whole first sections that are removed.
  append(metrics_, *start(), "more\n");
  const std::string text = read_file(metrics_);
  write_file_durably(metrics_, text.substr(text.find("\nTRIREME") + 1));
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
              HasSubstr("sections were removed or exchanged"));
}

TEST_F(EncryptedLogs, WhatWasPlainIsEncryptedAtTheNextStart) {
  const fs::path log = log_file(run_ / "logs", 0);
  const fs::path older = older_log_file(run_ / "logs", 0);
  fs::create_directories(run_ / "tensorboard");
  fs::create_directories(run_ / "trace");
  const fs::path events = run_ / "tensorboard" / "events.out.tfevents.1";
  const fs::path trace = run_ / "trace" / "rank-00000.json";
  for (const fs::path& file : {metrics_, log, older, events, trace}) {
    std::ofstream(file) << "canary in " << file.filename().string() << "\n";
  }
  std::ofstream(run_ / "journal.jsonl") << "{}\n";
  EXPECT_NO_THROW(check_files_are_plain(run_));
  const auto sealer = start();
  EXPECT_THAT(message_of<PolicyError>([&] { check_files_are_plain(run_); }),
              HasSubstr("but encryption.logs is off"));
  EXPECT_THAT(all_bytes(run_), Not(HasSubstr("canary")));
  for (const fs::path& file : {metrics_, log, older, events, trace}) {
    EXPECT_EQ(read(file), "canary in " + file.filename().string() + "\n");
  }
  append(log, *sealer, "more\n");
  EXPECT_THAT(read(log), HasSubstr("jsonl\nmore\n"));
  EXPECT_EQ(read_file(run_ / "journal.jsonl"), "{}\n");
}

TEST_F(EncryptedLogs, FilesThatWerePlainAreNamed) {
  write_file_durably(metrics_, "{}\n");
  EXPECT_THAT(warning_of_start(), HasSubstr("encrypted now: metrics.jsonl; until now"));
  EXPECT_EQ(warning_of_start(), "");
  write_file_durably(run_ / "logs/rank-00000.jsonl", "{}\n");
  EXPECT_THAT(warning_of_start(),
              HasSubstr("logs/rank-00000.jsonl; earlier starts had encrypted the run's files, so "
                        "somebody may have replaced them"));
}

TEST_F(EncryptedLogs, PlainFilesAreSetAsideOnceAStartHasEndedInOrder) {
  const fs::path log = log_file(run_ / "logs", 0);
  {
    const auto sealer = start();
    append(metrics_, *sealer, "one\n");
    append(log, *sealer, "log\n");
  }
  close();
  EXPECT_EQ(note_of_files_set_aside(run_), "");
  write_file_durably(metrics_, "{\"note\": \"forged\"}\n");
  fs::remove(log);
  EXPECT_THAT(warning_of_start(),
              AllOf(HasSubstr("these files were plain and were moved to set-aside/start-2: "
                              "metrics.jsonl"),
                    HasSubstr("these files are gone: logs/rank-00000.jsonl")));
  EXPECT_THAT(begun_.set_aside, testing::ElementsAre("metrics.jsonl"));
  EXPECT_THAT(begun_.missing, testing::ElementsAre("logs/rank-00000.jsonl"));
  EXPECT_FALSE(fs::exists(metrics_)) << "nothing forged becomes authentic";
  EXPECT_THAT(read_file(run_ / "set-aside/start-2/metrics.jsonl"), HasSubstr("forged"));
  EXPECT_THAT(note_of_files_set_aside(run_), HasSubstr("set-aside"));
}

TEST_F(EncryptedLogs, AStartNeedsAKeyOfTheEarlierOnes) {
  const KeyRing other({uri("other.key")});
  check_newest_logs_open(run_, other);  // there is none yet
  (void)start();
  check_newest_logs_open(run_, KeyRing({uri()}));
  EXPECT_THAT(message_of<PolicyError>([&] { check_newest_logs_open(run_, other); }),
              HasSubstr(log_key_file(run_, begun_.start.key).string()));
}

TEST_F(EncryptedLogs, PlainFilesTakeNoEncryptedOnesPlace) {
  append(metrics_, *start(), "one\n");
  std::ofstream(metrics_) << "{\"step\": 1, \"loss\": 0}\n";
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }),
              HasSubstr("is not encrypted, although its run encrypts its files"));
  EXPECT_THAT(message_of<DataError>([&] { (void)last_json_lines(metrics_, plain_reader()); }),
              HasSubstr("is not encrypted"));
}

TEST_F(EncryptedLogs, AFileWithoutItsFirstLineIsNotTakenForAPlainOne) {
  append(metrics_, *start(), "one\n");
  const std::string whole = read_file(metrics_);
  std::ofstream(metrics_) << whole.substr(whole.find('\n') + 1);
  const std::string removed = "line 1: this encrypted record stands in no section: lines before it";
  EXPECT_THAT(message_of<DataError>([&] { (void)read(metrics_); }), HasSubstr(removed));
  EXPECT_THAT(message_of<DataError>([&] { (void)plain_reader().read(metrics_); }),
              HasSubstr(removed));
}

TEST_F(EncryptedLogs, ARecordThatWasDroppedLeavesTheFileReadable) {
  const auto sealer = start();
  {
    AppendFile file = AppendFile::open_lines(metrics_, sealer->sealer(metrics_));
    EXPECT_TRUE(file.append("one\n"));
    rlimit before{};
    ::getrlimit(RLIMIT_FSIZE, &before);
    void (*const handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{fs::file_size(metrics_) + 30, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT_FALSE(file.append("a record that does not fit\n"));
    EXPECT_FALSE(file.append("another\n"));
    ::setrlimit(RLIMIT_FSIZE, &before);
    (void)std::signal(SIGXFSZ, handler);
    EXPECT_TRUE(file.append("two\n"));
    EXPECT_EQ(file.dropped(), 2);
  }
  EXPECT_EQ(read(metrics_), "one\ntwo\n");
  EXPECT_EQ(KeyedTextReader([this] { return std::vector<std::string>{uri()}; })
                .open_sections(read_file(metrics_), metrics_)
                .sections,
            2);
}

}  // namespace
}  // namespace trireme
