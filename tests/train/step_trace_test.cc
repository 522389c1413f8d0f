#include "src/train/watch/step_trace.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/trace/trace_summary.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

// Threads of one process have one clock, so the measured difference must be 0 within its precision.
TEST(SharedClock, ThreadsAreNotApart) {
  ThreadWorld world(4);
  world.run([](Communicator& comm) {
    for (int round = 0; round < 3; ++round) {
      const ClockReading reading = read_clock(comm);
      EXPECT_LE(std::abs(reading.offset_ns), reading.uncertainty_ns);
      EXPECT_EQ(reading.uncertainty_ns == 0, comm.rank() == 0);
    }
  });
}

TEST(SharedClock, JoinsTwoReadingsByALineWhereTheyDiffer) {
  const SharedClock clock({1000, 500, 10}, {2000, 600, 20});
  EXPECT_EQ(clock.at(1000), 1500);
  EXPECT_EQ(clock.at(1500), 2050);
  EXPECT_EQ(clock.at(2000), 2600);
  EXPECT_EQ(clock.drift_ns(), 100);
  EXPECT_EQ(clock.uncertainty_ns(), 20);
}

TEST(SharedClock, TakesTheBetterOfTwoReadingsThatAgree) {
  const SharedClock clock({1000, 500, 90}, {2000, 600, 20});
  EXPECT_EQ(clock.at(1000), 1600);
  EXPECT_EQ(clock.at(2000), 2600);
  EXPECT_EQ(clock.drift_ns(), 0);
  EXPECT_EQ(clock.uncertainty_ns(), 20);
}

// There are more operations than the recorder remembers, and some take long.
TEST(OperationLog, KeepsEveryOperationThatIsCollectedInTime) {
  FlightRecorder recorder(0, "here");
  FlightGroup& group = recorder.add_group(0, "dp", {0, 1});
  OperationLog log(recorder, 20'000);
  OperationLabel label;
  const auto run_one = [&](std::int64_t number) {
    label.number = number;
    const auto now = FlightRecorder::Clock::now();
    const FlightTicket ticket = recorder.queued(group, label, now);
    recorder.started(ticket, now);
    return ticket;
  };
  recorder.ended(run_one(0), group, label, false);
  log.start();
  const FlightTicket slow = run_one(1);
  for (std::int64_t number = 2; number < 10'002; ++number) {
    recorder.ended(run_one(number), group, label, false);
    if (number == 1000) {
      label.number = 1;
      recorder.ended(slow, group, label, false);
    }
    if (number % 1000 == 0) {
      log.collect();
    }
  }
  log.collect();
  const auto operations = log.operations();
  EXPECT_EQ(operations.size(), 10'001U);
  EXPECT_EQ(log.dropped(), 0);
  std::set<std::int64_t> numbers;
  for (const TraceOperation& operation : operations) {
    EXPECT_EQ(operation.group, "dp");
    EXPECT_GE(operation.end_ns, operation.start_ns);
    numbers.insert(operation.number);
  }
  EXPECT_EQ(numbers.size(), operations.size());
  EXPECT_FALSE(numbers.contains(0));
}

TEST(OperationLog, CountsWhatTheRecorderForgotAndWhatDoesNotFit) {
  FlightRecorder recorder(0, "here");
  FlightGroup& group = recorder.add_group(0, "dp", {0});
  OperationLog log(recorder, 1000);
  log.start();
  const auto many = static_cast<std::int64_t>(FlightRecorder::kEntries) + 100;
  for (std::int64_t number = 0; number < many; ++number) {
    recorder.ended(recorder.queued(group, {}), group, {}, false);
  }
  log.collect();
  EXPECT_EQ(log.operations().size(), 1000U);
  EXPECT_EQ(log.dropped(), many - 1000);
}

class StepTraceTest : public testing::Test {
 protected:
  // Runs steps [first, end) of a run that ends at `end`, on two ranks.
  void run(std::int64_t wanted, std::int64_t first, std::int64_t end) {
    run_in(folder_.path() / "trace", wanted, first, end);
  }
  static void run_in(const std::filesystem::path& folder, std::int64_t wanted, std::int64_t first,
                     std::int64_t end) {
    ThreadWorld world(2);
    world.run([&](Communicator& comm) {
      Log log({.rank = comm.rank(), .ranks = 2, .terminal_level = LogLevel::error});
      StepTrace trace({wanted, ProcessGrid(2, {}), folder, world.recorder(comm.rank()), comm, log});
      for (std::int64_t step = first; step < end; ++step) {
        trace.begin_step(step, end);
        SpanTimer span(trace.spans(), SpanKind::replicas, "sum");
        double value = 1;
        comm.all_reduce({&value, 1, DType::f64}, ReduceOp::sum).wait();
        span.end();
        trace.end_step();
      }
      trace.finish();
    });
  }
  std::vector<std::int64_t> steps() const { return summarize(read_traces(folder_.path())).steps; }
  TempFolder folder_;
};

using Numbers = std::vector<std::int64_t>;

TEST_F(StepTraceTest, PassesOverTwoStepsOfEveryStart) {
  run(2, 10, 20);
  EXPECT_EQ(steps(), (Numbers{13, 14}));
  run(3, 0, 4);
  EXPECT_EQ(steps(), (Numbers{2, 3, 4}));
  run(9, 5, 7);
  EXPECT_EQ(steps(), (Numbers{6, 7}));
}

TEST_F(StepTraceTest, ForgetsFilesOfRanksThatAreNoMore) {
  std::filesystem::create_directories(folder_.path() / "trace");
  std::ofstream(trace_file(folder_.path() / "trace", 2)) << "what an earlier trace has left";
  run(1, 0, 3);
  EXPECT_EQ(steps(), Numbers{3});
}

TEST_F(StepTraceTest, AFullDiskCostsTheTraceAlone) {
  const SmallFileSystem full(4096);
  if (!full.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  run_in(full.path() / "trace", 3, 0, 5);
  EXPECT_THROW((void)read_traces(full.path()), Error);
}

}  // namespace
}  // namespace trireme
