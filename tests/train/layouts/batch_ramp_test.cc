// A run whose batch grows has the same bits as runs with fixed batches, each of which continues
// where the one before stopped; in every layout, and across a resume in another layout in the
// middle of the ramp. Ranks are threads.
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/train/layouts/saving_rank.h"

namespace trireme {
namespace {

constexpr BatchRamp kRamp{4, 4, 2};  // 4, 8, 12 and 14 or 16 sequences
constexpr std::int64_t kRampSteps = 8;

const std::vector<Choice>& ramp_choices() {
  static const std::vector<Choice> all = {
      {{1, 1, 1}, 0},
      {{2, 1, 1}, 2},
      {{4, 1, 1}, 1},
      {{4, 1, 1}, 3, "1f1b", "full"},
      {{1, 1, 2}, 0, "interleaved"},
      {{2, 1, 2}, 2, "zero_bubble"},
      {{2, 1, 2}, 3, "gpipe", "selective"},
      {{1, 1, 4}, 0},
  };
  return all;
}

struct RampOutcome {
  std::vector<double> losses;
  std::string digest;
  friend bool operator==(const RampOutcome&, const RampOutcome&) = default;
};

class BatchRampTest : public testing::TestWithParam<Family> {
 protected:
  RunConfig config(const Choice& choice, std::int64_t full, const BatchRamp& ramp) const {
    RunConfig config = config_of(model_of(GetParam(), 4), choice);
    config.train.global_batch = full;
    config.train.batch_ramp = ramp;
    return config;
  }

  // Runs steps [first, end). Loads from `from` unless the run begins here, and saves to `to`.
  std::vector<double> steps(const RunConfig& config, const Choice& choice, std::int64_t first,
                            std::int64_t end) const {
    return run_world(config, choice.ranks(), choice.text(), [&](Rank& rank) {
      TrainingCounters counters;
      if (first == 0) {
        rank.engine.initialize(rank.config.train.seed);
      } else {
        counters = rank.load(folder(first));
      }
      std::vector<double> losses = rank.train(counters, end - first);
      rank.save(folder(end), counters);
      return losses;
    });
  }

  // Runs one stage after the other on one rank.
  RampOutcome fixed_batches(std::int64_t full) {
    const BatchSchedule batches(full, kRamp);
    RampOutcome outcome;
    for (std::int64_t first = 0; first < kRampSteps; first += kRamp.every) {
      append(outcome.losses, steps(config(Choice{}, batches.size_of(first), {}), Choice{}, first,
                                   first + kRamp.every));
    }
    return finish(std::move(outcome));
  }

  // Runs the steps before `change` in one layout and the others in another.
  RampOutcome ramp(const Choice& before, const Choice& after, std::int64_t full,
                   std::int64_t change) {
    RampOutcome outcome;
    append(outcome.losses, steps(config(before, full, kRamp), before, 0, change));
    append(outcome.losses, steps(config(after, full, kRamp), after, change, kRampSteps));
    return finish(std::move(outcome));
  }

 private:
  std::filesystem::path folder(std::int64_t step) const {
    return folder_->path() / std::to_string(step);
  }
  static void append(std::vector<double>& all, const std::vector<double>& more) {
    all.insert(all.end(), more.begin(), more.end());
  }
  RampOutcome finish(RampOutcome outcome) {
    outcome.digest = digest_in(folder(kRampSteps));
    folder_.emplace();
    return outcome;
  }

  std::optional<TempFolder> folder_{std::in_place};
};

TEST_P(BatchRampTest, HasTheBitsOfItsFixedBatches) {
  const RampOutcome expected = fixed_batches(16);
  for (std::size_t i = 0; i < ramp_choices().size(); ++i) {
    const Choice& before = ramp_choices()[i];
    const Choice& after = ramp_choices()[(i + 1) % ramp_choices().size()];
    // The layout changes together with the batch (after step 4), or between two such changes (after
    // step 3).
    EXPECT_EQ(ramp(before, after, 16, 4), expected) << before.text() << " -> " << after.text();
    EXPECT_EQ(ramp(before, after, 16, 3), expected) << before.text() << " -> " << after.text();
  }
}

// The last addition is smaller than the others.
TEST_P(BatchRampTest, EndsAtTheFullBatch) {
  const RampOutcome expected = fixed_batches(14);
  EXPECT_EQ(ramp(Choice{}, {{2, 1, 2}, 3}, 14, 7), expected);
  EXPECT_EQ(ramp({{2, 1, 1}, 2}, {{1, 1, 2}, 0, "interleaved"}, 14, 5), expected);
}

INSTANTIATE_TEST_SUITE_P(All, BatchRampTest, testing::Values(Family::gpt2, Family::llama),
                         [](const auto& named) { return std::string(family_name(named.param)); });

}  // namespace
}  // namespace trireme
