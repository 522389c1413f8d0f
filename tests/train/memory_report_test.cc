// Tests the report of a run's memory on several ranks, which are threads.
#include "src/train/memory/memory_report.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "mpi/thread/thread_world.h"
#include "src/base/file.h"
#include "src/train/engine/train_step.h"
#include "src/train/memory/step_memory.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::HasSubstr;

RunConfig config_of(int ranks) {
  RunConfig c;
  c.model.layers = 2;
  c.model.hidden = 64;
  c.model.heads = 4;
  c.model.vocab = 257;
  c.model.context = 16;
  c.model.complete();
  c.data.sequence = 16;
  c.train.steps = 1;
  c.train.global_batch = 4;
  c.train.precision = "fp32";
  c.optimizer.schedule.lr = c.optimizer.lr;
  c.optimizer.schedule.steps = 1;
  c.parallel.dp = {ranks, ""};
  return c;
}

std::vector<RankPlace> places_of(const Communicator& comm) {
  std::vector<RankPlace> places(static_cast<std::size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) {
    places[static_cast<std::size_t>(rank)].rank = rank;
    places[static_cast<std::size_t>(rank)].host = comm.host(rank);
  }
  return places;
}

// Returns the fields of the event in rank 0's log.
nlohmann::json event_in(const std::filesystem::path& folder, const std::string& name) {
  std::istringstream text(read_file(log_file(folder, 0)));
  for (std::string line; std::getline(text, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.value("event", "") == name) {
      return json;
    }
  }
  ADD_FAILURE() << "no event " << name;
  return {};
}

TEST(MemoryReport, PredictsTheSameOnAllRanks) {
  const TempFolder folder;
  const RunConfig config = config_of(2);
  const Layout layout = make_layout(config, 2, 2);
  std::vector<std::vector<MemoryPlan>> plans(2);
  ThreadWorld(2).run([&](Communicator& comm) {
    Log log({.rank = comm.rank(), .terminal_level = LogLevel::error, .folder = folder.path()});
    const MemoryReport report(config, layout, places_of(comm), comm, Device::cpu());
    plans[static_cast<std::size_t>(comm.rank())] = report.predicted();
    report.log_predicted(log);
  });
  EXPECT_EQ(plans[0], plans[1]);
  ASSERT_EQ(plans[0].size(), 2U);
  const StepMemory step = step_memory(config, layout, 1);
  EXPECT_EQ(plans[0][1].optimizer, step.states);
  EXPECT_EQ(plans[0][1].activations, step.activations);
  EXPECT_EQ(plans[0][1].snapshot, step.snapshot);
  const nlohmann::json ranks = event_in(folder.path(), "memory_predicted").at("ranks");
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[1].at("gradients"), plans[0][1].gradients);
  EXPECT_EQ(ranks[1].at("total"), plans[0][1].total());
  EXPECT_THAT(read_file(log_file(folder.path(), 1)), testing::Not(HasSubstr("memory_predicted")));
}

TEST(MemoryReport, MeasuresWhatAnEngineHasTaken) {
  const TempFolder folder;
  const RunConfig config = config_of(1);
  const Layout layout = make_layout(config, 1, 1);
  ThreadWorld world(1);
  world.run([&](Communicator& comm) {
    Log log({.terminal_level = LogLevel::error, .folder = folder.path()});
    const MemoryReport report(config, layout, places_of(comm), comm, Device::cpu());
    DeviceContext context(Device::cpu(), 1, comm.memory());
    Engine engine(config, layout, {comm, comm, world.recorder(0), context});
    engine.initialize(1);
    const std::vector<std::int32_t> ids(16, 1);
    const ConstView view{ids.data(), 16, DType::i32};
    TrainStep step(engine, [&]() -> LoadedMicroBatch { return {0, 1, 16, view, view, nullptr}; });
    TrainingCounters counters;
    (void)step.run(counters, 0);
    report.log_measured(engine, {.bytes = 12345, .shared_bytes = 0}, log);
  });
  const nlohmann::json event = event_in(folder.path(), "memory_measured");
  const nlohmann::json measured = event.at("ranks").front();
  const StepMemory predicted = step_memory(config, layout, 0);
  EXPECT_EQ(measured.at("parameters"), predicted.working_copies + predicted.masters);
  EXPECT_EQ(measured.at("optimizer"), predicted.states);
  EXPECT_EQ(measured.at("gradients"), predicted.gradients);
  EXPECT_EQ(measured.at("snapshot"), 12345);
  // What no other part accounts for counts as the program's, so that the parts add up to the
  // process.
  std::int64_t sum = 0;
  for (const char* name : MemoryPlan::names()) {
    sum += measured.at(name).get<std::int64_t>();
  }
  EXPECT_EQ(sum, measured.at("total"));
  EXPECT_GT(measured.at("program"), 0);
  ASSERT_EQ(event.at("over_predicted").size(), 1U);
  EXPECT_GT(event.at("over_predicted").front(), 0);
}

}  // namespace
}  // namespace trireme
