// Tests runs that train a pruned checkpoint (optimizer.keep_zeros): the zeros stay, in all layouts,
// with every optimizer and after a resume, with the same bits.
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/load/load_step.h"
#include "mpi/self_communicator.h"
#include "src/base/error.h"
#include "src/interchange/sparsify.h"
#include "tests/support/message_of.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using Words = std::vector<std::string>;
// By the names of tensors.
using Zeros = std::map<std::string, std::vector<bool>>;

StepFolder newest(const std::filesystem::path& checkpoints) {
  std::vector<std::string> skipped;
  return find_step(checkpoints, skipped);
}

// Returns where the tensors of the pruned matrices are zero; prefix: of their names, for states.
Zeros zeros_in(const std::filesystem::path& checkpoints, const std::string& prefix = "") {
  const StepFolder step = newest(checkpoints);
  Zeros zeros;
  for (const StoredTensor& tensor : step.manifest->tensors) {
    if (!tensor.name.starts_with(prefix + "transformer.h.") || tensor.shape.rank() != 2) {
      continue;
    }
    std::vector<float> x(static_cast<std::size_t>(tensor.shape.elements()));
    load_step(step.path, *step.manifest,
              std::vector{TensorBlock{tensor.name, tensor.shape, Extent::whole(tensor.shape),
                                      View{x.data(), std::ssize(x), DType::f32}}});
    std::vector<bool>& found = zeros[tensor.name.substr(prefix.size())];
    for (const float each : x) {
      found.push_back(each == 0);
    }
  }
  return zeros;
}

class PrunedRun : public testing::Test {
 protected:
  void SetUp() override {
    base_.train({"train.steps=2"});
    SelfCommunicator self;
    StepKeys keys(self, {});
    sparsify({.checkpoint = base_.checkpoints(), .out = pruned(), .sparsity = 0.5}, self, keys);
  }
  std::filesystem::path pruned() const { return base_.folder() / "pruned"; }
  Words keys(const Words& more = {}) const {
    Words all = {"checkpoint.init_from=" + pruned().string(), "optimizer.keep_zeros=true",
                 "optimizer.lr=0.01", "checkpoint.every=3"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  ThreadRun base_;
};

TEST_F(PrunedRun, LearnsWithoutItsZeros) {
  ThreadRun run;
  run.train(keys());
  const Zeros zeros = zeros_in(pruned());
  ASSERT_EQ(zeros.size(), 4U);
  EXPECT_EQ(zeros_in(run.checkpoints()), zeros);
  EXPECT_EQ(zeros_in(run.checkpoints(), "optimizer.m."), zeros);
  EXPECT_EQ(zeros_in(run.checkpoints(), "optimizer.v."), zeros);
  const auto metrics = run.metrics();
  EXPECT_LT(metrics.back().at("loss"), metrics.front().at("loss"));
}

TEST_F(PrunedRun, LosesItsZerosWithoutTheOption) {
  ThreadRun run;
  run.train(keys({"optimizer.keep_zeros=false"}));
  for (const auto& [name, zeros] : zeros_in(run.checkpoints())) {
    EXPECT_LT(std::count(zeros.begin(), zeros.end(), true), std::ssize(zeros) / 100) << name;
  }
}

TEST_F(PrunedRun, AnyLayoutResumesAnyOtherWithTheSameBits) {
  ThreadRun whole;
  whole.train(keys());
  const std::string expected = whole.digest();
  const std::vector<std::pair<int, Words>> layouts = {{2, {"parallel.zero=1"}},
                                                      {2, {"parallel.pp=2"}},
                                                      {4, {"parallel.pp=2", "parallel.zero=3"}},
                                                      {1, {}}};
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const auto& [first_ranks, first] = layouts[i];
    const auto& [second_ranks, second] = layouts[(i + 1) % layouts.size()];
    ThreadRun run;
    Words half = first;
    half.insert(half.end(), {"train.steps=3", "optimizer.schedule.steps=6"});
    run.train(keys(half), first_ranks);
    run.train(keys(second), second_ranks);
    EXPECT_EQ(run.digest(), expected) << testing::PrintToString(first);
  }
}

TEST_F(PrunedRun, EveryOptimizerAndPrecisionKeepsTheZeros) {
  const Zeros zeros = zeros_in(pruned());
  for (const auto& [ranks, more] :
       std::vector<std::pair<int, Words>>{{1, {"optimizer.name=sgd", "optimizer.ema=0.9"}},
                                          {1, {"optimizer.name=muon"}},
                                          {2, {"parallel.tp=2"}},
                                          {2, {"train.precision=bf16", "parallel.zero=2"}},
                                          {1, {"optimizer.clip=0", "optimizer.weight_decay=0"}}}) {
    ThreadRun run;
    run.train(keys(more), ranks);
    EXPECT_EQ(zeros_in(run.checkpoints()), zeros) << testing::PrintToString(more);
  }
}

TEST_F(PrunedRun, AResumeDoesNotChangeTheOptionUnnoticed) {
  ThreadRun run;
  run.train(keys({"train.steps=3", "optimizer.schedule.steps=6"}));
  EXPECT_THAT(message_of<ConfigError>([&] { run.train(keys({"optimizer.keep_zeros=false"})); }),
              HasSubstr("optimizer.keep_zeros"));
}

TEST(PrunedConfig, RefusesWhatCannotBe) {
  const ThreadRun run;
  EXPECT_THAT(message_of<ConfigError>([&] { run.config({"optimizer.keep_zeros=true"}); }),
              HasSubstr("checkpoint.init_from"));
  EXPECT_THAT(
      message_of<ConfigError>([&] {
        run.config({"optimizer.keep_zeros=true", "checkpoint.init_from=x", "lora.products=all"});
      }),
      HasSubstr("adapters begin with zeros"));
}

}  // namespace
}  // namespace trireme
