// Tests runs that train a part of a model and keep the rest (train.frozen): what their checkpoints
// hold, that any layout resumes any other with the same bits, and what is refused.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/nn/model_size.h"
#include "src/train/load_model.h"
#include "src/train/saving/base_weights.h"
#include "tests/support/message_of.h"
#include "tests/train/resumed_layouts.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A base of two blocks, and runs that freeze the embeddings and the first of them.
class FrozenRun : public testing::Test {
 protected:
  void SetUp() override { base_.train(shape({"train.steps=2", "optimizer.schedule.steps=9"})); }

  static std::vector<std::string> shape(std::vector<std::string> more) {
    more.insert(more.begin(), {"model.layers=2", "optimizer.lr=0.01"});
    return more;
  }
  std::vector<std::string> keys(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all = shape(
        {"checkpoint.init_from=" + base_.checkpoints().string(),
         "train.frozen=[transformer.wte, transformer.wpe, transformer.h.0]", "checkpoint.every=3"});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static StepFolder newest(const ThreadRun& run) {
    std::vector<std::string> skipped;
    return find_step(run.checkpoints(), skipped);
  }
  static std::map<std::string, std::vector<float>> weights(const ThreadRun& run) {
    DeviceContext context(Device::cpu(), 1);
    const LoadedModel loaded = load_model(run.checkpoints(), context, DType::f32);
    std::map<std::string, std::vector<float>> all;
    for (ParameterId id = 0; id < loaded.parameters->count(); ++id) {
      all[(*loaded.parameters)[id].name] = context.read<float>(loaded.parameters->compute(id));
    }
    return all;
  }

  ThreadRun base_;
};

TEST_F(FrozenRun, SavesTheTrainedWeightsAloneAndTheRecordOfTheBase) {
  ThreadRun tuned;
  tuned.train(keys());
  const StepFolder step = newest(tuned);
  std::int64_t elements = 0;
  for (const StoredTensor& tensor : step.manifest->tensors) {
    EXPECT_THAT(tensor.name, testing::Not(HasSubstr("transformer.h.0."))) << tensor.name;
    elements += tensor.shape.elements();
  }
  EXPECT_EQ(elements, 3 * trained_parameter_count(tuned.config(keys()).model)) << "with moments";
  EXPECT_TRUE(needs_base(*step.manifest));
  EXPECT_FALSE(has_adapters(*step.manifest));
  EXPECT_EQ(recorded_base(step).manifest_sha256, newest(base_).manifest_sha256);
}

TEST_F(FrozenRun, KeepsTheFrozenWeightsAndTrainsTheOthers) {
  ThreadRun tuned;
  tuned.train(keys());
  const auto before = weights(base_);
  const auto after = weights(tuned);
  ASSERT_EQ(before.size(), after.size());
  for (const auto& [name, values] : after) {
    const bool frozen = tuned.config(keys()).model.frozen.holds(name);
    EXPECT_EQ(values == before.at(name), frozen) << name;
  }
  const auto metrics = tuned.metrics();
  EXPECT_LT(metrics.back().at("loss"), metrics.front().at("loss"));
}

TEST_F(FrozenRun, AnyLayoutResumesAnyOtherWithTheSameBits) {
  // In two stages, the first one trains nothing.
  expect_same_bits_after_resuming({{2, {"parallel.zero=1"}},
                                   {2, {"parallel.pp=2"}},
                                   {2, {"parallel.pp=2", "parallel.schedule=zero_bubble"}},
                                   {4, {"parallel.pp=2", "parallel.zero=3"}},
                                   {1, {"train.recompute=full"}}},
                                  [&](const auto& more) { return keys(more); });
}

// Of a tied model whose matrix is trained, both ends add to its gradient.
TEST_F(FrozenRun, StagesAgreeWhereTheTiedMatrixIsTrained) {
  const std::vector<std::string> frozen = {"train.frozen=[transformer.wpe, transformer.h.*.attn]"};
  ThreadRun whole;
  whole.train(keys(frozen));
  ThreadRun staged;
  std::vector<std::string> stages = frozen;
  stages.emplace_back("parallel.pp=2");
  staged.train(keys(stages), 2);
  EXPECT_EQ(staged.digest(), whole.digest());
}

TEST_F(FrozenRun, TensorParallelRanksResume) {
  ThreadRun run;
  run.train(keys({"train.steps=3", "optimizer.schedule.steps=6", "parallel.tp=2"}), 2);
  run.train(keys({"parallel.tp=1"}));
  const auto before = weights(base_);
  for (const auto& [name, values] : weights(run)) {
    EXPECT_EQ(values == before.at(name), run.config(keys()).model.frozen.holds(name)) << name;
  }
}

TEST_F(FrozenRun, RefusesOtherWeightsAndOtherModules) {
  ThreadRun tuned;
  tuned.train(keys({"train.steps=3", "optimizer.schedule.steps=6"}));
  ThreadRun other;
  other.train(shape({"train.steps=1", "train.seed=5"}));
  EXPECT_THAT(message_of<ConfigError>([&] {
                tuned.train(keys({"checkpoint.init_from=" + other.checkpoints().string()}));
              }),
              AllOf(HasSubstr(base_.checkpoints().string()), HasSubstr("same weights")));
  EXPECT_THAT(
      message_of<ConfigError>([&] { tuned.train(keys({"train.frozen=[transformer.h.0]"})); }),
      HasSubstr("train.frozen"));
  ThreadRun more;
  EXPECT_THAT(message_of<ConfigError>([&] {
                more.train(keys({"checkpoint.init_from=" + tuned.checkpoints().string()}));
              }),
              HasSubstr("the trained weights alone"));
  std::filesystem::remove_all(base_.checkpoints());
  DeviceContext context(Device::cpu(), 1);
  EXPECT_THAT(message_of<NotFound>([&] { load_model(tuned.checkpoints(), context, DType::f32); }),
              AllOf(HasSubstr("weights of some modules"), HasSubstr("step-00000002")));
}

TEST(FrozenConfig, RefusesWhatCannotBe) {
  const ThreadRun run;
  EXPECT_THAT(message_of<ConfigError>([&] { run.config({"train.frozen=[transformer.wte]"}); }),
              HasSubstr("checkpoint.init_from"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                run.config({"train.frozen=[transformer.wte]", "checkpoint.init_from=x",
                            "optimizer.name=muon"});
              }),
              HasSubstr("muon"));
}

}  // namespace
}  // namespace trireme
