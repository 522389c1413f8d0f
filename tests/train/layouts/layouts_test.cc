// Tests that every layout of 1, 2, 4 and 8 ranks, with every level of ZeRO, every schedule and
// every way to recompute, gives the same losses and norms: bit for bit if the tensor-parallel
// degree is the same, otherwise within rounding. The soak tries the whole table. The daily test has
// fewer steps, and 4 and 8 ranks do not combine everything: the ways to recompute alternate, with 8
// ranks also the levels and schedules. Ranks are threads.
#include <algorithm>
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
  DeviceContext context(Device::cpu(), 1, world.memory());
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

// Combined says what is tried in all combinations in every grid. The rest alternates.
enum class Combined { everything, levels_and_schedules, nothing };

// Returns the levels of ZeRO and the schedules that a grid is tried with. If these alternate, each
// level and each schedule occurs at least once, and `shift` determines which of them meet.
std::vector<std::pair<int, std::string>> kinds_of(const Degrees& grid, Combined combined,
                                                  std::size_t shift) {
  const std::size_t levels = grid.dp > 1 ? 4 : 1;
  const std::vector<std::string> schedules =
      grid.pp > 1 ? pipeline_schedule_names() : std::vector<std::string>{"1f1b"};
  std::vector<std::pair<int, std::string>> kinds;
  if (combined == Combined::nothing) {
    for (std::size_t i = 0; i < std::max(levels, schedules.size()); ++i) {
      kinds.emplace_back(static_cast<int>((i + shift) % levels), schedules[i % schedules.size()]);
    }
    return kinds;
  }
  for (std::size_t level = 0; level < levels; ++level) {
    for (const std::string& schedule : schedules) {
      kinds.emplace_back(static_cast<int>(level), schedule);
    }
  }
  return kinds;
}

std::vector<Choice> choices_of(int ranks, Combined combined) {
  const std::vector<std::pair<std::string, std::int64_t>> recomputes = {
      {"none", 1}, {"selective", 1}, {"full", 1}, {"full", 2}};
  const std::size_t ways = combined == Combined::everything ? recomputes.size() : 1;
  std::size_t turn = 0;
  std::size_t shift = 0;
  std::vector<Choice> choices;
  for (const Degrees& grid : grids_of(ranks)) {
    int last_level = 0;
    for (const auto& [level, schedule] : kinds_of(grid, combined, shift)) {
      if (combined == Combined::levels_and_schedules && level != last_level) {
        ++turn;  // so that each way meets each level and each schedule
      }
      last_level = level;
      for (std::size_t i = 0; i < ways; ++i) {
        const auto& [recompute, every] = recomputes[turn++ % recomputes.size()];
        choices.push_back({grid, level, schedule, recompute, every});
      }
    }
    ++shift;
    turn += combined == Combined::nothing ? 2 : 1;  // other combinations in the next grid
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
  Combined combined;
  std::int64_t steps;
};

class LayoutsTest : public testing::TestWithParam<Part> {};

TEST_P(LayoutsTest, GiveTheSameBits) {
  const Part& part = GetParam();
  expect_equal_bits(part.family, choices_of(part.ranks, part.combined), part.steps);
}

std::vector<Part> parts_of(const std::vector<int>& ranks, Combined combined, std::int64_t steps) {
  std::vector<Part> parts;
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const int n : ranks) {
      parts.push_back({family, n, combined, steps});
    }
  }
  return parts;
}

std::string part_name(const testing::TestParamInfo<Part>& named) {
  return fmt::format("{}_{}_ranks", family_name(named.param.family), named.param.ranks);
}

INSTANTIATE_TEST_SUITE_P(Table, LayoutsTest,
                         testing::ValuesIn(parts_of({1, 2}, Combined::everything, 3)), part_name);
INSTANTIATE_TEST_SUITE_P(TableInTurns, LayoutsTest,
                         testing::ValuesIn(parts_of({4}, Combined::levels_and_schedules, 3)),
                         part_name);
INSTANTIATE_TEST_SUITE_P(TableAllInTurns, LayoutsTest,
                         testing::ValuesIn(parts_of({8}, Combined::nothing, 3)), part_name);
// These are too many for the daily tests.
INSTANTIATE_TEST_SUITE_P(WholeTable, LayoutsTest,
                         testing::ValuesIn(parts_of({1, 2, 4, 8}, Combined::everything, 10)),
                         part_name);

}  // namespace
}  // namespace trireme
