#include "mpi/watch/flight_recorder.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "tests/mpi/watch/dump_lines.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kEntries = static_cast<std::int64_t>(FlightRecorder::kEntries);

OperationLabel label_of(OperationKind kind, std::int64_t number, std::int64_t bytes = 64) {
  OperationLabel label;
  label.kind = kind;
  label.dtype = DType::f32;
  label.number = number;
  label.bytes = bytes;
  return label;
}

FlightQuestion question_about(const FlightGroup& group, std::int64_t number, int asker = 0) {
  return {asker, group.id, number, "a test"};
}

TEST(FlightRecorder, FollowsAnOperation) {
  FlightRecorder recorder(3, "n2");
  FlightGroup& group = recorder.add_group(0, "dp", {2, 3});
  const OperationLabel label = label_of(OperationKind::all_reduce, 7, 4096);
  const FlightTicket ticket = recorder.queued(group, label);
  EXPECT_EQ(recorder.entries().at(0).state, FlightState::queued);
  EXPECT_EQ(recorder.entries().at(0).started_ns, 0);
  recorder.started(ticket, FlightRecorder::Clock::now());
  EXPECT_EQ(recorder.entries().at(0).state, FlightState::started);
  EXPECT_EQ(group.entered.load(), 7);
  EXPECT_EQ(group.finished.load(), -1);
  recorder.ended(ticket, group, label, false);
  const FlightEntry entry = recorder.entries().at(0);
  EXPECT_EQ(entry.state, FlightState::finished);
  EXPECT_TRUE(agree(entry.label, label));
  EXPECT_EQ(entry.group, group.serial);
  EXPECT_LE(entry.queued_ns, entry.started_ns);
  EXPECT_LE(entry.started_ns, entry.ended_ns);
  EXPECT_EQ(group.finished.load(), 7);
}

TEST(FlightRecorder, FailureIsNoProgress) {
  FlightRecorder recorder(0, "a");
  FlightGroup& group = recorder.add_group(0, "world", {0, 1});
  const OperationLabel label = label_of(OperationKind::barrier, 0);
  recorder.ended(recorder.queued(group, label), group, label, true);
  EXPECT_EQ(recorder.entries().at(0).state, FlightState::failed);
  EXPECT_EQ(group.finished.load(), -1);
}

// Sends and receives have numbers of their own.
TEST(FlightRecorder, TransfersAreNotCollectives) {
  FlightRecorder recorder(0, "a");
  FlightGroup& group = recorder.add_group(0, "world", {0, 1});
  OperationLabel label = label_of(OperationKind::recv, 5);
  label.root = 1;
  const FlightTicket ticket = recorder.queued(group, label);
  EXPECT_EQ(group.entered.load(), -1);
  EXPECT_THAT(recorder.answer(question_about(group, 5, 1)).waiting,
              ElementsAre(HasSubstr("recv #5 (64 B, group world 0,1, from rank 1) for ")));
  recorder.ended(ticket, group, label, false);
  EXPECT_EQ(group.finished.load(), -1);
}

TEST(FlightRecorder, KeepsTheNewest) {
  FlightRecorder recorder(0, "a");
  FlightGroup& group = recorder.add_group(0, "world", {0, 1});
  const FlightTicket first = recorder.queued(group, label_of(OperationKind::barrier, 0));
  for (std::int64_t number = 1; number <= kEntries + 10; ++number) {
    recorder.queued(group, label_of(OperationKind::barrier, number));
  }
  // Another operation has taken its slot.
  recorder.started(first, FlightRecorder::Clock::now());
  recorder.ended(first, group, label_of(OperationKind::barrier, 0), false);
  const auto entries = recorder.entries();
  ASSERT_EQ(entries.size(), FlightRecorder::kEntries);
  EXPECT_EQ(entries.front().label.number, 11);
  EXPECT_EQ(entries.back().label.number, kEntries + 10);
  for (const FlightEntry& entry : entries) {
    EXPECT_EQ(entry.state, FlightState::queued);
  }
  EXPECT_EQ(group.finished.load(), 0);
}

// A quiet group's numbers remain known after the ring has forgotten its last operation.
TEST(FlightRecorder, NumbersOutliveTheRing) {
  FlightRecorder recorder(0, "a");
  FlightGroup& quiet = recorder.add_group(0, "tp", {0, 1});
  FlightGroup& busy = recorder.add_group(0, "dp", {0, 2});
  const OperationLabel label = label_of(OperationKind::all_gather, 41);
  recorder.ended(recorder.queued(quiet, label), quiet, label, false);
  EXPECT_TRUE(recorder.answer(question_about(quiet, 42)).last.has_value());
  for (std::int64_t number = 0; number < kEntries; ++number) {
    recorder.queued(busy, label_of(OperationKind::barrier, number));
  }
  const FlightReport report = recorder.answer(question_about(quiet, 42));
  EXPECT_TRUE(report.knows_group);
  EXPECT_EQ(report.entered, 41);
  EXPECT_EQ(report.finished, 41);
  EXPECT_FALSE(report.last.has_value());
  EXPECT_EQ(report.waiting.size(), 4U);
}

TEST(FlightRecorder, GivesWhatCameAfterATicket) {
  FlightRecorder recorder(0, "n0");
  FlightGroup& dp = recorder.add_group(0, "dp", {0, 1});
  (void)recorder.add_group(0, "tp", {0});
  FlightTicket second = 0;
  for (std::int64_t number = 0; number < 4; ++number) {
    const FlightTicket ticket = recorder.queued(dp, label_of(OperationKind::all_reduce, number));
    second = number == 1 ? ticket : second;
  }
  const std::vector<FlightEntry> later = recorder.entries(second);
  ASSERT_EQ(later.size(), 2U);
  EXPECT_EQ(later[0].label.number, 2);
  EXPECT_TRUE(recorder.entries(later[1].ticket).empty());
  EXPECT_EQ(recorder.read(second)->label.number, 1);
  EXPECT_FALSE(recorder.read(later[1].ticket + 1).has_value());
  EXPECT_EQ(recorder.group_names().at(dp.serial), "dp");
  EXPECT_EQ(recorder.group_names().size(), 2U);
}

TEST(FlightRecorder, AnswersWithPhaseAndGroup) {
  FlightRecorder recorder(3, "n2");
  EXPECT_STREQ(recorder.enter_phase("data_load"), "start");
  FlightGroup& group = recorder.add_group(77, "dp", {0, 3});
  const OperationLabel label = label_of(OperationKind::broadcast, 4);
  recorder.queued(group, label);
  const FlightReport report = recorder.answer(question_about(group, 4, 0));
  EXPECT_EQ(report.rank, 3);
  EXPECT_EQ(report.host, "n2");
  EXPECT_EQ(report.phase, "data_load");
  EXPECT_GE(report.phase_seconds, 0);
  EXPECT_EQ(report.entered, 4);
  ASSERT_TRUE(report.overdue.has_value());
  EXPECT_TRUE(agree(*report.overdue, label));
  // The question has reported that this operation is overdue elsewhere.
  EXPECT_EQ(group.alarm.load(), 4);
  EXPECT_EQ(group.alarmed_by.load(), 0);
  recorder.group_ended(group);
  EXPECT_TRUE(recorder.answer(question_about(group, 5)).left_group);
  EXPECT_FALSE(recorder.answer({0, 12345, 0, ""}).knows_group);
}

TEST(FlightRecorder, ForgetsEndedGroupsOnly) {
  FlightRecorder recorder(0, "a");
  FlightGroup& living = recorder.add_group(1000, "living", {0, 1});
  for (std::uint64_t i = 0; i < 2000; ++i) {
    recorder.group_ended(recorder.add_group(2000 + i, "short", {0, 1}));
  }
  EXPECT_TRUE(recorder.answer(question_about(living, 0)).knows_group);
  EXPECT_FALSE(recorder.answer({0, 2000, 0, ""}).knows_group);
  EXPECT_TRUE(recorder.answer({0, 3999, 0, ""}).knows_group);
}

// With three writers, each with a group of its own, and two readers, every entry that is read is
// one that was written.
TEST(FlightRecorder, ReadersMeetWritersSafely) {
  FlightRecorder recorder(0, "a");
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < 3; ++writer) {
    threads.emplace_back([&recorder, writer] {
      FlightGroup& group = recorder.add_group(0, "g", {0, writer});
      for (std::int64_t number = 0; number < 3 * kEntries; ++number) {
        const OperationLabel label = label_of(OperationKind::all_reduce, number, 8 * number);
        const FlightTicket ticket = recorder.queued(group, label);
        recorder.started(ticket, FlightRecorder::Clock::now());
        recorder.ended(ticket, group, label, number % 2 == 1);
      }
    });
  }
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        for (const FlightEntry& entry : recorder.entries()) {
          EXPECT_EQ(entry.label.bytes, 8 * entry.label.number);
          EXPECT_EQ(entry.label.kind, OperationKind::all_reduce);
        }
        recorder.enter_phase("train");
        recorder.answer({1, 1, 5, "a test"});
      }
    });
  }
  for (std::size_t i = 0; i < 3; ++i) {
    threads[i].join();
  }
  stop.store(true);
  threads[3].join();
  threads[4].join();
  // A writer that was held up for a whole ring leaves its entry out.
  EXPECT_GE(recorder.entries().size(), FlightRecorder::kEntries - 3);
}

class Dump : public testing::Test {
 protected:
  Dump() : folder_(testing::TempDir() + "/flight_dump") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~Dump() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(Dump, IsStrictJsonByLine) {
  FlightRecorder recorder(3, "n\"2\xFF");
  recorder.enter_phase("checkpoint");
  FlightGroup& group = recorder.add_group(0, "dp\n", {0, 1, 2, 3});
  const OperationLabel done = label_of(OperationKind::all_reduce, 0, 4096);
  const FlightTicket ticket = recorder.queued(group, done);
  recorder.started(ticket, FlightRecorder::Clock::now());
  recorder.ended(ticket, group, done, false);
  OperationLabel waiting = label_of(OperationKind::send, 0);
  waiting.root = 2;
  recorder.queued(group, waiting);
  ASSERT_EQ(recorder.dump(folder_ / "d.jsonl", "because"), "");
  const std::vector<json> lines = dump_lines(folder_ / "d.jsonl");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0]["event"], "flight_recorder");
  EXPECT_EQ(lines[0]["rank"], 3);
  EXPECT_EQ(lines[0]["why"], "because");
  EXPECT_EQ(lines[0]["phase"], "checkpoint");
  EXPECT_EQ(lines[0]["groups"][0]["name"], "dp\n");
  EXPECT_EQ(lines[0]["groups"][0]["ranks"], "0..3");
  EXPECT_EQ(lines[1]["operation"], "all_reduce");
  EXPECT_EQ(lines[1]["bytes"], 4096);
  EXPECT_EQ(lines[1]["state"], "finished");
  EXPECT_LE(lines[1]["started"], lines[1]["ended"]);
  EXPECT_NEAR(lines[1]["queued"].get<double>(), lines[0]["time"].get<double>(), 60);
  EXPECT_EQ(lines[2]["operation"], "send");
  EXPECT_EQ(lines[2]["peer"], 2);
  EXPECT_EQ(lines[2]["state"], "queued");
  EXPECT_TRUE(lines[2]["ended"].is_null());
}

TEST_F(Dump, InBackgroundGoesToTheFolder) {
  FlightRecorder recorder(12, "a");
  recorder.dump_in_background("no folder yet");
  EXPECT_TRUE(recorder.wait_for_dump(std::chrono::seconds(20)));
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  recorder.set_dump_folder(folder_);
  for (int i = 0; i < 3; ++i) {
    recorder.dump_in_background("asked");
    EXPECT_TRUE(recorder.wait_for_dump(std::chrono::seconds(20)));
  }
  EXPECT_EQ(dump_lines(folder_ / "flight-rank-00012.jsonl").at(0)["why"], "asked");
}

// Nothing is thrown, no partial file is left, and an older file stays.
TEST_F(Dump, SaysWhatWentWrong) {
  FlightRecorder recorder(0, "a");
  EXPECT_THAT(recorder.dump(folder_ / "absent" / "d.jsonl", "x"), HasSubstr("absent"));
  std::ofstream(folder_ / "file") << "text";
  EXPECT_THAT(recorder.dump(folder_ / "file" / "d.jsonl", "x"), HasSubstr("d.jsonl"));
  EXPECT_NE(recorder.dump("/dev/full/d.jsonl", "x"), "");
  recorder.set_dump_folder("/proc/none/logs");
  recorder.dump_in_background("x");
  EXPECT_TRUE(recorder.wait_for_dump(std::chrono::seconds(20)));
  EXPECT_EQ(read_file(folder_ / "file"), "text");
}

TEST(CompactRanks, AreShort) {
  EXPECT_EQ(compact_ranks({0, 1, 2, 3}), "0..3");
  EXPECT_EQ(compact_ranks({5}), "5");
  EXPECT_EQ(compact_ranks({0, 1}), "0,1");
  EXPECT_EQ(compact_ranks({0, 2, 4}), "0,2,4");
  EXPECT_EQ(compact_ranks({3, 1, 2}), "3,1,2");
  EXPECT_EQ(compact_ranks({0, 2, 4, 6, 8, 10, 12, 14, 16}), "0,2,4,..,16 (9 ranks)");
}

}  // namespace
}  // namespace trireme
