// Every optimizer, term of the loss, average and dropout gives the same bits in all layouts and
// across a resume in another layout: losses and the digest of all that a checkpoint holds. Ranks
// are threads.
#include <map>

#include "tests/support/temp_folder.h"
#include "tests/train/layouts/saving_rank.h"

namespace trireme {
namespace {

constexpr std::int64_t kFeatureSteps = 3;  // before the checkpoint, and after

void use_muon(RunConfig& c) {
  c.optimizer.name = "muon";
  c.optimizer.momentum = 0.95F;
  c.optimizer.nesterov = true;
}

// Returns layouts in which matrices are whole.
const std::vector<Choice>& whole_choices() {
  static const std::vector<Choice> all = {
      {{1, 1, 1}, 0},
      {{2, 1, 2}, 0, "1f1b", "full"},
      {{2, 1, 2}, 0, "zero_bubble", "selective"},
  };
  return all;
}

struct Feature {
  std::string name;
  void (*apply)(RunConfig& config);
  Family family = Family::gpt2;
  bool whole = false;  // needs whole matrices
};

void PrintTo(const Feature& feature, std::ostream* out) { *out << feature.name; }

void use_sgd(RunConfig& c) {
  c.optimizer.name = "sgd";
  c.optimizer.nesterov = true;
  c.optimizer.schedule.lr = 0.2;
  c.optimizer.schedule.kind = ScheduleKind::inverse_sqrt;
  c.optimizer.schedule.warmup = 2;
}

void use_adapters(RunConfig& c) {
  c.model.lora = {{"all"}, 3, 6};
  c.model.complete();
}

void use_jais(RunConfig& c) {
  c.model.alibi = true;
  c.model.swiglu = true;
  c.model.embedding_scale = 1.75;
  c.model.logit_scale = 0.4;
  c.model.attention_scale = 0.5;
}

const std::vector<Feature>& features() {
  static const std::vector<Feature> all = {
      {"loss_terms",
       [](RunConfig& c) {
         c.train.label_smoothing = 0.1F;
         c.train.z_loss = 1e-2F;
       }},
      {"attention_dropout", [](RunConfig& c) { c.model.attention_dropout = 0.3; }},
      {"attention_dropout_of_grouped_heads", [](RunConfig& c) { c.model.attention_dropout = 0.3; },
       Family::llama},
      {"sgd", use_sgd},
      {"average", [](RunConfig& c) { c.optimizer.ema = 0.5F; }},
      {"average_of_sgd",
       [](RunConfig& c) {
         use_sgd(c);
         c.optimizer.ema = 0.9F;
       },
       Family::llama},
      {"qkv_bias", [](RunConfig& c) { c.model.qkv_bias = true; }, Family::llama},
      {"alibi_and_swiglu", use_jais},
      {"adapters_of_alibi_and_swiglu",
       [](RunConfig& c) {
         use_jais(c);
         use_adapters(c);
       }},
      {"adapters", use_adapters},
      {"adapters_of_llama", use_adapters, Family::llama},
      {"muon", use_muon, Family::gpt2, true},
      {"muon_of_llama", use_muon, Family::llama, true},
  };
  return all;
}

const std::vector<Choice>& feature_choices() {
  static const std::vector<Choice> all = {
      {{1, 1, 1}, 0},
      {{2, 1, 2}, 1, "1f1b", "full"},
      {{2, 1, 2}, 2, "zero_bubble"},
      {{2, 1, 2}, 3, "gpipe", "selective"},
      {{1, 2, 1}, 0},
      {{2, 2, 1}, 3, "1f1b", "selective"},
  };
  return all;
}

// FeatureOutcome holds the losses of two stretches of steps, and the digest of what was saved after
// each.
struct FeatureOutcome {
  std::vector<double> losses;
  std::string digests[2];
  friend bool operator==(const FeatureOutcome&, const FeatureOutcome&) = default;
};

class FeaturesTest : public testing::TestWithParam<Feature> {
 protected:
  RunConfig config(const Choice& choice) const {
    RunConfig config = config_of(model_of(GetParam().family, 2), choice);
    GetParam().apply(config);
    return config;
  }

  // Runs the first steps in one layout and the others in another.
  FeatureOutcome run(const Choice& first, const Choice& second) const {
    const TempFolder folder;
    const std::filesystem::path folders[2] = {folder.path() / "first", folder.path() / "second"};
    FeatureOutcome outcome;
    outcome.losses = run_world(config(first), first.ranks(), first.text(), [&](Rank& rank) {
      rank.engine.initialize(rank.config.train.seed);
      TrainingCounters counters;
      std::vector<double> losses = rank.train(counters, kFeatureSteps);
      rank.save(folders[0], counters);
      return losses;
    });
    const auto more = run_world(config(second), second.ranks(), second.text(), [&](Rank& rank) {
      if (rank.config.model.lora.is_on()) {
        rank.engine.initialize(rank.config.train.seed);  // the frozen weights
      }
      TrainingCounters counters = rank.load(folders[0]);
      std::vector<double> losses = rank.train(counters, kFeatureSteps);
      rank.save(folders[1], counters);
      return losses;
    });
    outcome.losses.insert(outcome.losses.end(), more.begin(), more.end());
    outcome.digests[0] = digest_in(folders[0]);
    outcome.digests[1] = digest_in(folders[1]);
    return outcome;
  }
};

TEST_P(FeaturesTest, GivesTheSameBitsInEveryLayout) {
  const RunConfig plain = config_of(model_of(GetParam().family, 2), Choice{});
  const std::vector<double> without = run_world(plain, 1, "plain", [](Rank& rank) {
    rank.engine.initialize(rank.config.train.seed);
    TrainingCounters counters;
    return rank.train(counters, kFeatureSteps);
  });
  const std::vector<Choice>& tried = GetParam().whole ? whole_choices() : feature_choices();
  std::map<int, FeatureOutcome> by_tp;
  for (std::size_t i = 0; i < tried.size(); ++i) {
    const Choice& first = tried[i];
    // Take the next layout of the same tensor-parallel degree.
    std::size_t next = (i + 1) % tried.size();
    while (tried[next].degrees.tp != first.degrees.tp) {
      next = (next + 1) % tried.size();
    }
    const FeatureOutcome outcome = run(first, tried[next]);
    const auto [found, is_new] = by_tp.try_emplace(first.degrees.tp, outcome);
    EXPECT_EQ(outcome, found->second) << first.text() << " -> " << tried[next].text();
  }
  const FeatureOutcome& one = by_tp.at(1);
  for (std::size_t i = 0; by_tp.contains(2) && i < one.losses.size(); ++i) {
    EXPECT_NEAR(by_tp.at(2).losses[i] / one.losses[i], 1, 1e-5) << "tp 2, step " << i;
  }
  if (GetParam().name != "average") {
    EXPECT_NE(std::vector<double>(one.losses.begin(), one.losses.begin() + kFeatureSteps), without)
        << "the feature does something";
  }
}

// With 8 ranks, two of them hold each of the 4 key-value heads.
TEST(AdaptersFeaturesTest, OfSharedHeadsAreSummed) {
  const auto losses = [](const Degrees& degrees) {
    RunConfig config = config_of(model_of(Family::llama, 1), {degrees});
    use_adapters(config);
    return run_world(config, degrees.tp, "tp", [](Rank& rank) {
      rank.engine.initialize(rank.config.train.seed);
      TrainingCounters counters;
      return rank.train(counters, kFeatureSteps);
    });
  };
  const std::vector<double> whole = losses({1, 1, 1});
  const std::vector<double> divided = losses({1, 8, 1});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NEAR(divided[i] / whole[i], 1, 1e-5) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, FeaturesTest, testing::ValuesIn(features()),
                         [](const auto& named) { return named.param.name; });

}  // namespace
}  // namespace trireme
