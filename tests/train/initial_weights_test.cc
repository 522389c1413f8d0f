// Tests runs that begin with the weights of another one (checkpoint.init_from).
#include "src/train/saving/initial_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/load/load_step.h"
#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Returns the digest of the weights in the newest step of a folder of checkpoints.
std::string weights_in(const std::filesystem::path& checkpoints) {
  std::vector<std::string> skipped;
  const StepFolder step = find_step(checkpoints, skipped);
  return logical_digest(step.path, *step.manifest, DigestScope::model);
}

// A step that changes nothing, because its updates vanish in rounding.
const std::vector<std::string> kStill = {"train.steps=1", "optimizer.lr=1e-30",
                                         "optimizer.weight_decay=0", "train.seed=9"};

std::vector<std::string> still_from(const ThreadRun& run, std::vector<std::string> more = {}) {
  more.insert(more.end(), kStill.begin(), kStill.end());
  more.push_back("checkpoint.init_from=" + run.checkpoints().string());
  return more;
}

TEST(InitialWeights, AreThoseOfTheCheckpointInAnyLayout) {
  ThreadRun first;
  first.train({"train.steps=3"});
  const std::string weights = weights_in(first.checkpoints());
  for (const auto& [ranks, layout] :
       std::vector<std::pair<int, std::vector<std::string>>>{{1, {}},
                                                             {2, {"parallel.zero=3"}},
                                                             {2, {"parallel.tp=2"}},
                                                             {2, {"optimizer.name=sgd"}}}) {
    ThreadRun second;
    second.train(still_from(first, layout), ranks);
    EXPECT_EQ(weights_in(second.checkpoints()), weights) << testing::PrintToString(layout);
  }
  ThreadRun other;
  other.train(kStill);
  EXPECT_NE(weights_in(other.checkpoints()), weights) << "the seed's weights are others";
}

TEST(InitialWeights, AreNotReadByARunThatResumes) {
  ThreadRun first;
  first.train({"train.steps=1"});
  ThreadRun second;
  second.train(still_from(first));
  const std::string weights = weights_in(second.checkpoints());
  std::filesystem::remove_all(first.checkpoints());
  second.train({"train.steps=1", "optimizer.lr=1e-30", "optimizer.weight_decay=0", "train.seed=9",
                "checkpoint.init_from=" + first.checkpoints().string()});
  EXPECT_EQ(weights_in(second.checkpoints()), weights);
}

TEST(InitialWeights, BeginTheAverageOfTheWeights) {
  ThreadRun first;
  first.train({"train.steps=1"});
  ThreadRun second;
  second.train(still_from(first, {"optimizer.ema=0.999"}));
  std::vector<std::string> skipped;
  const StepFolder step = find_step(second.checkpoints(), skipped);
  std::vector<float> weights(16 * 257);
  std::vector<float> average(weights.size());
  const Shape shape{257, 16};
  const auto block = [&](const std::string& name, std::vector<float>& to) {
    return TensorBlock{name, shape, Extent::whole(shape),
                       View{to.data(), std::ssize(to), DType::f32}};
  };
  load_step(step.path, *step.manifest,
            std::vector{block("transformer.wte.weight", weights),
                        block("optimizer.ema.transformer.wte.weight", average)});
  EXPECT_EQ(weights, average);
}

TEST(InitialWeights, AreRefusedIfTheModelDiffers) {
  ThreadRun first;
  first.train({"train.steps=1"});
  ThreadRun second;
  EXPECT_THAT(message_of<ConfigError>([&] {
                second.train(still_from(first, {"model.heads=4", "model.norm_epsilon=1e-6"}));
              }),
              AllOf(HasSubstr("checkpoint.init_from"), HasSubstr("model.heads"),
                    HasSubstr("model.norm_epsilon"), Not(HasSubstr("model.hidden"))));
  ThreadRun third;
  EXPECT_THAT(message_of<NotFound>([&] {
                third.train({"checkpoint.init_from=" + (third.dir() / "nowhere").string()});
              }),
              HasSubstr("nowhere"));
}

}  // namespace
}  // namespace trireme
