// Tests that any layout can load a checkpoint that any other layout saved: it saves the same digest
// again, and, if the tensor-parallel degree is the same, all later steps have the same losses.
// Ranks are threads.
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/train/layouts/saving_rank.h"

namespace trireme {
namespace {

constexpr std::int64_t kBefore = 3;  // steps

const std::vector<Choice>& resume_choices() {
  static const std::vector<Choice> all = {
      {{1, 1, 1}, 0},
      {{4, 1, 1}, 0},
      {{2, 1, 1}, 1},
      {{4, 1, 1}, 3},
      {{1, 1, 2}, 0, "gpipe", "full"},
      {{2, 1, 2}, 2, "zero_bubble"},
      {{1, 1, 4}, 0, "interleaved"},
      {{1, 2, 1}, 0},
      {{2, 2, 1}, 2, "1f1b", "selective"},
      {{2, 2, 2}, 3},
  };
  return all;
}

struct Case {
  Family family;
  std::int64_t steps_after;
  std::size_t stride;  // each layout's checkpoint is loaded by every stride-th layout from it on
};

class ResumeTest : public testing::TestWithParam<Case> {
 protected:
  // Runs some steps from the start, saves, and runs the steps that are to be repeated.
  std::vector<double> start(const Choice& choice, const std::filesystem::path& folder) {
    return run_world(config_of(model_, choice), choice.ranks(), choice.text(), [&](Rank& rank) {
      rank.engine.initialize(rank.config.train.seed);
      TrainingCounters counters;
      rank.train(counters, kBefore);
      rank.save(folder, counters);
      return rank.train(counters, GetParam().steps_after);
    });
  }

  // Loads, saves again elsewhere, and continues.
  std::vector<double> go_on(const Choice& choice, const std::filesystem::path& from,
                            const std::filesystem::path& to, bool train) {
    return run_world(config_of(model_, choice), choice.ranks(), choice.text(), [&](Rank& rank) {
      TrainingCounters counters = rank.load(from);
      EXPECT_EQ(counters.step, kBefore);
      rank.save(to, counters);
      return train ? rank.train(counters, GetParam().steps_after) : std::vector<double>{};
    });
  }

  ModelConfig model_ = model_of(GetParam().family, 4);
  TempFolder folder_;
};

TEST_P(ResumeTest, AnyLayoutGoesOnFromAnyOther) {
  for (std::size_t saver = 0; saver < resume_choices().size(); ++saver) {
    const Choice& saved = resume_choices()[saver];
    const std::filesystem::path from = folder_.path() / std::to_string(saver);
    const std::vector<double> uninterrupted = start(saved, from);
    const std::string digest = digest_in(from);
    for (std::size_t away = 0; away < resume_choices().size(); away += GetParam().stride) {
      const std::size_t loader = (saver + away) % resume_choices().size();
      const Choice& loaded = resume_choices()[loader];
      SCOPED_TRACE(saved.text() + " -> " + loaded.text());
      const std::filesystem::path to = from / "again" / std::to_string(loader);
      const bool train = saved.degrees.tp == loaded.degrees.tp;
      const std::vector<double> losses = go_on(loaded, from, to, train);
      EXPECT_EQ(digest_in(to), digest);
      if (train) {
        EXPECT_EQ(losses, uninterrupted);
      }
    }
  }
}

std::string resume_case_name(const testing::TestParamInfo<Case>& named) {
  return std::string(family_name(named.param.family));
}

INSTANTIATE_TEST_SUITE_P(Some, ResumeTest,
                         testing::Values(Case{Family::gpt2, 3, 3}, Case{Family::llama, 3, 3}),
                         resume_case_name);
// Every pair of layouts with more steps takes too long for the daily tests.
INSTANTIATE_TEST_SUITE_P(Whole, ResumeTest,
                         testing::Values(Case{Family::gpt2, 20, 1}, Case{Family::llama, 20, 1}),
                         resume_case_name);

}  // namespace
}  // namespace trireme
