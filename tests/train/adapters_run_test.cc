// Tests runs that fine-tune adapters (lora.products): what their checkpoints hold, that any layout
// resumes any other with the same bits, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/self_communicator.h"
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
using testing::Each;
using testing::HasSubstr;

// A base, and runs beside its weights.
class AdaptersRun : public testing::Test {
 protected:
  void SetUp() override { base_.train({"train.steps=2", "optimizer.schedule.steps=9"}); }
  std::vector<std::string> keys(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"checkpoint.init_from=" + base_.checkpoints().string(),
                             "lora.products=[c_attn, mlp.c_proj]", "lora.rank=4",
                             "optimizer.lr=0.01", "checkpoint.every=3"});
    return more;
  }
  static StepFolder newest(const ThreadRun& run) {
    std::vector<std::string> skipped;
    return find_step(run.checkpoints(), skipped);
  }

  ThreadRun base_;
};

TEST_F(AdaptersRun, SavesAdaptersAloneAndTheRecordOfTheBase) {
  const std::string before = base_.digest();
  ThreadRun tuned;
  tuned.train(keys());
  const StepFolder step = newest(tuned);
  std::vector<std::string> names;
  std::int64_t elements = 0;
  for (const StoredTensor& tensor : step.manifest->tensors) {
    names.push_back(tensor.name);
    elements += tensor.shape.elements();
  }
  EXPECT_THAT(names, Each(HasSubstr(".lora_")));
  EXPECT_EQ(elements, 3 * trained_parameter_count(tuned.config(keys()).model)) << "with moments";
  EXPECT_TRUE(has_adapters(*step.manifest));
  EXPECT_EQ(recorded_base(step).manifest_sha256, newest(base_).manifest_sha256);
  EXPECT_EQ(base_.digest(), before);
  const auto metrics = tuned.metrics();
  EXPECT_LT(metrics.back().at("loss"), metrics.front().at("loss")) << "they learn";
}

TEST_F(AdaptersRun, AnyLayoutResumesAnyOtherWithTheSameBits) {
  expect_same_bits_after_resuming(
      {{2, {"parallel.zero=1"}}, {2, {"parallel.pp=2"}}, {4, {"parallel.pp=2", "parallel.zero=3"}}},
      [&](const auto& more) { return keys(more); });
}

TEST_F(AdaptersRun, IsLoadedWithItsBase) {
  ThreadRun tuned;
  tuned.train(keys());
  DeviceContext context(Device::cpu(), 1);
  const LoadedModel loaded = load_model(tuned.checkpoints(), context, DType::f32);
  const LoadedModel base = load_model(base_.checkpoints(), context, DType::f32);
  EXPECT_TRUE(loaded.config.lora.is_on());
  const auto weight = [&](const LoadedModel& model, const std::string& name) {
    for (ParameterId id = 0; id < model.parameters->count(); ++id) {
      if ((*model.parameters)[id].name == name) {
        return context.read<float>(model.parameters->compute(id));
      }
    }
    return std::vector<float>();
  };
  EXPECT_EQ(weight(loaded, "transformer.h.0.attn.c_attn.weight"),
            weight(base, "transformer.h.0.attn.c_attn.weight"));
  EXPECT_THAT(weight(loaded, "transformer.h.0.attn.c_attn.lora_B.weight"),
              testing::Contains(testing::Ne(0.0F)));
}

TEST_F(AdaptersRun, RefusesToResumeBesideOtherWeights) {
  ThreadRun tuned;
  tuned.train(keys({"train.steps=3", "optimizer.schedule.steps=6"}));
  ThreadRun other;
  other.train({"train.steps=1", "train.seed=5"});
  std::vector<std::string> changed = keys();
  changed.push_back("checkpoint.init_from=" + other.checkpoints().string());
  EXPECT_THAT(message_of<ConfigError>([&] { tuned.train(changed); }),
              AllOf(HasSubstr(base_.checkpoints().string()), HasSubstr("same weights")));
  std::vector<std::string> wider = keys();
  wider.emplace_back("lora.rank=5");
  EXPECT_THAT(message_of<ConfigError>([&] { tuned.train(wider); }), HasSubstr("lora.rank"));
}

TEST_F(AdaptersRun, SaysWhenTheBaseIsGoneOrHasChanged) {
  ThreadRun tuned;
  tuned.train(keys({"train.steps=3"}));
  DeviceContext context(Device::cpu(), 1);
  base_.train({"train.steps=3",
               "optimizer.schedule.steps=9"});  // a newer step; the record names the old one
  EXPECT_NO_THROW(load_model(tuned.checkpoints(), context, DType::f32));
  std::filesystem::remove_all(base_.checkpoints());
  EXPECT_THAT(message_of<NotFound>([&] { load_model(tuned.checkpoints(), context, DType::f32); }),
              AllOf(HasSubstr("adapters"), HasSubstr("step-00000002")));
}

TEST_F(AdaptersRun, RefusesAdaptersAsABase) {
  ThreadRun tuned;
  tuned.train(keys({"train.steps=3"}));
  ThreadRun more;
  std::vector<std::string> on_adapters = keys();
  on_adapters.push_back("checkpoint.init_from=" + tuned.checkpoints().string());
  EXPECT_THAT(message_of<ConfigError>([&] { more.train(on_adapters); }),
              HasSubstr("holds adapters alone"));
}

TEST(AdaptersConfig, RefusesWhatCannotBe) {
  const ThreadRun run;
  EXPECT_THAT(message_of<ConfigError>([&] { run.config({"lora.products=all"}); }),
              HasSubstr("checkpoint.init_from"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                run.config({"lora.products=[q_proj]", "checkpoint.init_from=x"});
              }),
              HasSubstr("a gpt2 model has c_attn"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                run.config({"lora.products=all", "checkpoint.init_from=x", "optimizer.name=muon"});
              }),
              HasSubstr("muon"));
  EXPECT_EQ(run.config({"lora.products=all", "checkpoint.init_from=x"}).model.lora.products,
            lora_products(ModelConfig()));
}

}  // namespace
}  // namespace trireme
