// One table: every layout of 1, 2, 4 and 8 ranks, every level of ZeRO, every schedule and every way
// to recompute gives the losses and norms of ten steps bit for bit, where the tensor-parallel
// degree is the same; and within rounding where it is not. Of every day: fewer steps, and of 4 and
// 8 ranks a way to recompute each, in turns. Ranks are threads.
#include <map>

#include <gtest/gtest.h>

#include "tests/train/layouts/tiny_runs.h"

namespace trireme {
namespace {

struct Outcome {
  std::vector<double> losses;
  std::vector<double> norms;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome train_rank(Communicator& world, FlightRecorder& recorder, const RunConfig& config,
                   std::int64_t steps) {
  world.set_deadline(std::chrono::seconds(120));
  DeviceContext context(Device{}, 1, world.memory());
  Engine engine(config, make_layout(config, world.size(), world.size()),
                {world, world, recorder, context});
  engine.set_deadline(std::chrono::seconds(120));
  engine.initialize(config.train.seed);
  HashedTokens tokens(engine);
  TrainStep step(engine, [&] { return tokens.next(); });
  TrainingCounters counters;
  Outcome outcome;
  for (std::int64_t i = 0; i < steps; ++i) {
    const StepResult result = step.run(counters, 0);
    outcome.losses.push_back(result.loss);
    outcome.norms.push_back(result.grad_norm);
  }
  return outcome;
}

Outcome train(Family family, const Choice& choice, std::int64_t steps) {
  const RunConfig config = config_of(model_of(family, 8), choice);
  ThreadWorld world(choice.ranks());
  std::vector<Outcome> outcomes(static_cast<std::size_t>(choice.ranks()));
  world.run([&](Communicator& comm) {
    outcomes[static_cast<std::size_t>(comm.rank())] =
        train_rank(comm, world.recorder(comm.rank()), config, steps);
  });
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome, outcomes.front()) << choice.text();
  }
  return outcomes.front();
}

std::vector<Degrees> grids_of(int ranks) {
  std::vector<Degrees> grids;
  for (int tp = 1; tp <= ranks; tp *= 2) {
    for (int pp = 1; tp * pp <= ranks; pp *= 2) {
      grids.push_back({ranks / tp / pp, tp, pp});
    }
  }
  return grids;
}

// The ways to recompute that a layout is tried with.
enum class Recomputes { all, next };

// Every grid with every level of ZeRO, every schedule and every way to recompute, or the next one.
std::vector<Choice> choices_of(int ranks, Recomputes which) {
  const std::vector<std::pair<std::string, std::int64_t>> recomputes = {
      {"none", 1}, {"selective", 1}, {"full", 1}, {"full", 2}};
  std::size_t turn = 0;
  std::vector<Choice> choices;
  for (const Degrees& grid : grids_of(ranks)) {
    const std::vector<std::string> schedules =
        grid.pp > 1 ? pipeline_schedule_names() : std::vector<std::string>{"1f1b"};
    for (int zero = 0; zero <= (grid.dp > 1 ? 3 : 0); ++zero) {
      for (const std::string& schedule : schedules) {
        for (std::size_t i = 0; i < (which == Recomputes::all ? recomputes.size() : 1); ++i) {
          const auto& [recompute, every] = recomputes[turn++ % recomputes.size()];
          choices.push_back({grid, zero, schedule, recompute, every});
        }
      }
      ++turn;  // so that each way meets each level and each schedule
    }
  }
  return choices;
}

void expect_equal_bits(Family family, const std::vector<Choice>& choices, std::int64_t steps) {
  const Outcome one = train(family, Choice{}, steps);
  EXPECT_LT(one.losses.back(), one.losses.front() - 0.01 * static_cast<double>(steps))
      << "it learns";
  std::map<int, Outcome> by_tp = {{1, one}};
  for (const Choice& choice : choices) {
    const Outcome outcome = train(family, choice, steps);
    const auto [first, is_first] = by_tp.try_emplace(choice.degrees.tp, outcome);
    EXPECT_EQ(outcome, first->second) << choice.text();
    for (std::size_t i = 0; is_first && i < one.losses.size(); ++i) {
      EXPECT_NEAR(outcome.losses[i] / one.losses[i], 1, 1e-5) << choice.text() << " step " << i;
    }
  }
}

struct Part {
  Family family;
  int ranks;
  Recomputes recomputes;
  std::int64_t steps;
};

class LayoutsTest : public testing::TestWithParam<Part> {};

TEST_P(LayoutsTest, GiveTheSameBits) {
  const Part& part = GetParam();
  expect_equal_bits(part.family, choices_of(part.ranks, part.recomputes), part.steps);
}

std::vector<Part> parts_of(const std::vector<int>& ranks, Recomputes recomputes,
                           std::int64_t steps) {
  std::vector<Part> parts;
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const int n : ranks) {
      parts.push_back({family, n, recomputes, steps});
    }
  }
  return parts;
}

std::string part_name(const testing::TestParamInfo<Part>& named) {
  return fmt::format("{}_{}_ranks", family_name(named.param.family), named.param.ranks);
}

INSTANTIATE_TEST_SUITE_P(Table, LayoutsTest,
                         testing::ValuesIn(parts_of({1, 2}, Recomputes::all, 4)), part_name);
INSTANTIATE_TEST_SUITE_P(TableInTurns, LayoutsTest,
                         testing::ValuesIn(parts_of({4, 8}, Recomputes::next, 4)), part_name);
// Too many for every day.
INSTANTIATE_TEST_SUITE_P(WholeTable, LayoutsTest,
                         testing::ValuesIn(parts_of({1, 2, 4, 8}, Recomputes::all, 10)), part_name);

}  // namespace
}  // namespace trireme
