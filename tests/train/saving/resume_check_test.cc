// Tests which checkpoints a run continues from, and what it says about the others.
#include "src/train/saving/resume_check.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/train/run/fingerprint.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

RunConfig run_config() {
  RunConfig config;
  config.model.layers = 2;
  config.model.hidden = 64;
  config.model.heads = 2;
  config.model.vocab = 257;
  config.model.context = 32;
  config.model.complete();
  config.data.sequence = 32;
  config.train.steps = 100;
  config.train.global_batch = 8;
  return config;
}

RunFingerprints fingerprints(const RunConfig& config) {
  return {JsonValue(config_fingerprint(config, "digest", "bytes")),
          JsonValue(numerics_fingerprint(config, "reference", 1, 1, false)),
          JsonValue(nlohmann::json::object())};
}

// Returns the checkpoint that a run of the configuration saved after 10 steps.
Manifest saved_by(const RunConfig& config) {
  Manifest manifest;
  manifest.meta.step = 10;
  manifest.meta.samples = 80;
  const RunFingerprints own = fingerprints(config);
  manifest.meta.config = JsonValue::parse(own.config->dump());
  manifest.meta.numerics = own.numerics;
  TrainingCounters counters;
  counters.step = 10;
  counters.updates = 10;
  nlohmann::json extra;
  put_counters(counters, extra);
  manifest.meta.extra = JsonValue::parse(extra.dump());
  return manifest;
}

class ResumeCheckTest : public testing::Test {
 protected:
  // Makes checks for the run, and returns what it logged.
  std::string log_of(const std::function<void(const ResumeCheck&)>& work) {
    const TempFolder folder;
    RunFingerprints own = fingerprints(now_);
    own.numerics->update(*numerics_);
    {
      Log log({.terminal_level = LogLevel::error, .folder = folder.path()});
      const SaveReport report(log, 0, 100);
      work(ResumeCheck(now_, own, report));
    }
    std::string text = read_file(log_file(folder.path(), 0));
    return text.substr(text.find('\n') + 1);
  }
  std::string accept(const Manifest& manifest) {
    return log_of([&](const ResumeCheck& check) { check.accept(manifest); });
  }
  std::string refusal(const Manifest& manifest) {
    return message_of<ConfigError>([&] { accept(manifest); });
  }

  RunConfig before_ = run_config();
  RunConfig now_ = run_config();
  JsonValue numerics_;  // replaces fields of the run's numerics fingerprint
};

TEST_F(ResumeCheckTest, TheSameRunIsAcceptedInSilence) {
  EXPECT_THAT(accept(saved_by(before_)), IsEmpty());
}

TEST_F(ResumeCheckTest, NamesEveryFieldThatDiffers) {
  before_.optimizer.lr = 6e-4F;
  before_.model.dropout = 0.5;
  EXPECT_EQ(refusal(saved_by(before_)),
            "the checkpoint of step 10 belongs to another run:\n"
            "  model.dropout: checkpoint 0.5, run 0.0\n"
            "  optimizer.lr: checkpoint 0.0006, run 0.0003\n"
            "Go back to the old values or choose another checkpoint.dir, or accept a field with "
            "checkpoint.allow_change=[FIELD]");
  now_.checkpoint.allow_change = {"optimizer.lr"};
  EXPECT_THAT(refusal(saved_by(before_)),
              AllOf(HasSubstr("model.dropout"), Not(HasSubstr("optimizer.lr"))));
  now_.checkpoint.allow_change = {"optimizer", "model.dropout"};
  EXPECT_THAT(accept(saved_by(before_)), IsEmpty());
}

TEST_F(ResumeCheckTest, NamesFieldsByTheirKeysInTheConfiguration) {
  before_.model.rope_scaling.factor = 8;
  EXPECT_THAT(refusal(saved_by(before_)),
              HasSubstr("\n  model.rope_scaling.factor: checkpoint 8.0, run 0.0\n"));
  for (const char* const name : {"model.rope_scaling.factor", "model.rope_factor"}) {
    now_.checkpoint.allow_change = {name};
    EXPECT_THAT(accept(saved_by(before_)), IsEmpty()) << name;
    EXPECT_NO_THROW(check_allowed_fields({name}, config_fingerprint(now_, "", "")));
  }
}

TEST_F(ResumeCheckTest, KnowsWhetherTheModelIsTheSame) {
  const auto is_same = [&] {
    bool same = false;
    log_of([&](const ResumeCheck& check) { same = check.is_same_model(saved_by(before_)); });
    return same;
  };
  before_.optimizer.lr = 6e-4F;
  EXPECT_TRUE(is_same());
  before_.model.hidden = 128;
  now_.checkpoint.allow_change = {"model.hidden"};
  EXPECT_FALSE(is_same());
}

// Another layout computes other products; what both compute must be computed alike.
TEST_F(ResumeCheckTest, WarnsOfOtherAlgorithmsForTheSameProduct) {
  Manifest manifest = saved_by(before_);
  (*manifest.meta.numerics)["kernels"] = (*numerics_)["kernels"] = "cuda";
  (*manifest.meta.numerics)["algorithms"] = {{"8x8x4 f32", "tile 20"}, {"8x8x16 f32", "tile 20"}};
  (*numerics_)["algorithms"] = {{"8x8x4 f32", "tile 20"}, {"1x1x1 f32", "tile 18"}};
  EXPECT_THAT(accept(manifest), IsEmpty());
  (*numerics_)["algorithms"]["8x8x4 f32"] = "tile 18";
  EXPECT_THAT(accept(manifest), AllOf(HasSubstr("algorithms.8x8x4 f32: checkpoint"),
                                      HasSubstr("tile 18"), Not(HasSubstr("8x8x16"))));
  manifest.meta.numerics->erase("algorithms");
  EXPECT_THAT(accept(manifest), AllOf(HasSubstr("step 10 does not record its algorithms"),
                                      Not(HasSubstr("computes differently"))));
}

TEST_F(ResumeCheckTest, SaysWhichFieldsNothingCanAccept) {
  before_.model.hidden = before_.model.ffn = 128;
  EXPECT_THAT(refusal(saved_by(before_)),
              testing::EndsWith("choose another checkpoint.dir; no option accepts another "
                                "model.ffn, model.hidden"));
  before_.train.seed = 9;
  EXPECT_THAT(refusal(saved_by(before_)),
              testing::EndsWith("checkpoint.allow_change=[FIELD]; no option accepts another "
                                "model.ffn, model.hidden"));
}

// GPT-2 has a tensor with a row per position; Llama's heads determine the shapes of its tensors.
TEST_F(ResumeCheckTest, ShapesDependOnTheFamily) {
  const auto advice = [&](const std::function<void(ModelConfig&)>& change) {
    before_ = now_;
    change(before_.model);
    return refusal(saved_by(before_));
  };
  const auto context = [](ModelConfig& model) { model.context = 48; };
  const auto heads = [](ModelConfig& model) { model.heads = 4; };
  EXPECT_THAT(advice(context), HasSubstr("no option accepts another model.context"));
  EXPECT_THAT(advice(heads), Not(HasSubstr("no option")));
  now_.model.alibi = true;
  EXPECT_THAT(advice(context), Not(HasSubstr("no option")));
  EXPECT_THAT(advice([](ModelConfig& model) { model.alibi = false; }),
              HasSubstr("no option accepts another model.alibi"));
  now_.model.alibi = false;
  now_.model.family = Family::llama;
  EXPECT_THAT(advice(context), Not(HasSubstr("no option")));
  EXPECT_THAT(advice(heads), HasSubstr("no option accepts another model.heads"));
}

TEST_F(ResumeCheckTest, ABatchMayChangeWhereItsPlaceInTheDataIsKept) {
  now_.train.global_batch = 16;
  EXPECT_THAT(refusal(saved_by(before_)),
              HasSubstr("no option accepts another train.global_batch"));
  now_.train.batch_ramp = {8, 8, 10};  // the same ten batches of 8, and larger ones after them
  EXPECT_THAT(refusal(saved_by(before_)), Not(HasSubstr("no option")));
}

TEST_F(ResumeCheckTest, WarnsOfOtherArithmetic) {
  Manifest manifest = saved_by(before_);
  (*manifest.meta.numerics)["kernels"] = "avx2";
  EXPECT_THAT(accept(manifest),
              AllOf(HasSubstr("computes differently from the one that wrote step 10"),
                    HasSubstr("kernels: checkpoint"), Not(HasSubstr("instructions"))));
  manifest = saved_by(before_);
  manifest.meta.numerics->erase("instructions");
  EXPECT_THAT(accept(manifest), AllOf(HasSubstr("step 10 does not record its instructions"),
                                      Not(HasSubstr("computes differently"))));
}

TEST_F(ResumeCheckTest, AManifestThatContradictsItselfIsDamaged) {
  Manifest manifest = saved_by(before_);
  (*manifest.meta.extra)["counters"]["step"] = 11U;
  EXPECT_THROW(accept(manifest), DataError);
  manifest = saved_by(before_);
  manifest.meta.samples = 81;
  EXPECT_EQ(message_of<DataError>([&] { accept(manifest); }),
            "samples is 81, but the counters say 10 batches");
}

class ResumedCounters : public ResumeCheckTest {
 protected:
  // Returns the counters with which to continue, and sets log_.
  TrainingCounters counters(const CheckpointMeta& meta) {
    TrainingCounters result;
    log_ = log_of([&](const ResumeCheck& check) { result = check.counters(meta); });
    return result;
  }
  std::string log_;
};

TEST_F(ResumedCounters, AreThoseOfTheCheckpoint) {
  EXPECT_EQ(counters(saved_by(before_).meta).step, 10);
  EXPECT_THAT(log_, IsEmpty());
  Manifest damaged = saved_by(before_);
  (*damaged.meta.extra)["counters"]["step"] = 11U;
  (*damaged.meta.extra)["counters"]["updates"] = 11U;
  EXPECT_THROW(counters(damaged.meta), DataError);
}

TEST_F(ResumedCounters, NeedTheBatchesThatWereTrained) {
  now_.train.global_batch = 16;
  EXPECT_THAT(message_of<ConfigError>([&] { counters(saved_by(before_).meta); }),
              HasSubstr("the checkpoint of step 10 has seen 80 samples, which are not 10 batches "
                        "of train.global_batch 16: continue"));
  now_.train.batch_ramp = {4, 4, 10};
  EXPECT_THAT(message_of<ConfigError>([&] { counters(saved_by(before_).meta); }),
              HasSubstr("train.global_batch 16 and train.batch_ramp: continue"));
  now_.train.batch_ramp = {8, 8, 10};
  EXPECT_NO_THROW(counters(saved_by(before_).meta));
}

// A sample has sixteen tokens instead of 32, so 80 samples are only half of the tokens that were
// read.
TEST_F(ResumedCounters, TellWhichTokensAnotherLengthReadsAgain) {
  now_.data.shuffle = "none";
  now_.data.sequence = 16;
  counters(saved_by(before_).meta);
  EXPECT_THAT(log_, AllOf(HasSubstr("data.sequence was 32 up to step 10 and is 16"),
                          HasSubstr("the tokens 1280 to 2560 of the data's order are read again")));
  now_.data.sequence = 64;
  counters(saved_by(before_).meta);
  EXPECT_THAT(log_, HasSubstr("the tokens 2560 to 5120 of the data's order are left out"));
  now_.data.shuffle = "block";
  counters(saved_by(before_).meta);
  EXPECT_THAT(log_, HasSubstr("they are cut and shuffled anew"));
  Manifest first = saved_by(before_);
  first.meta.samples = 0;
  first.meta.step = 0;
  (*first.meta.extra)["counters"]["step"] = 0U;
  (*first.meta.extra)["counters"]["updates"] = 0U;
  counters(first.meta);
  EXPECT_THAT(log_, IsEmpty()) << "nothing was read yet";
}

}  // namespace
}  // namespace trireme
