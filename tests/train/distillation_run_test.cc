// Tests runs that learn from a teacher (distill): the same bits in all layouts and after a resume,
// that the student comes nearer to the teacher, and what is refused. Ranks are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/dataset_writing.h"
#include "mpi/self_communicator.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/nn/model_size.h"
#include "src/train/memory/memory_plan.h"
#include "src/train/saving/teacher_weights.h"
#include "tests/support/message_of.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Options = std::vector<std::string>;

class DistillationRun : public testing::Test {
 protected:
  struct Outcome {
    std::vector<std::string> losses;
    std::vector<double> parts;
    std::string digest;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };

  // The teacher is a Llama that is wider and deeper than the student, a GPT-2.
  void SetUp() override {
    teacher_.train({"model.family=llama", "model.layers=2", "model.hidden=24", "model.kv_heads=1",
                    "model.ffn=40", "model.context=12", "train.steps=60", "optimizer.lr=0.02"});
  }
  Options keys(Options more = {}) const {
    more.insert(more.begin(), {"distill.teacher=" + teacher_.checkpoints().string(),
                               "distill.weight=0.75", "distill.temperature=3", "model.layers=2",
                               "train.log_every=1", "optimizer.clip=0.5"});
    return more;
  }
  Outcome outcome() const {
    Outcome found;
    for (const nlohmann::json& line : run_.metrics()) {
      found.losses.push_back(line.at("loss_bits").get<std::string>());
      found.parts.push_back(line.at("cross_entropy").get<double>());
      found.parts.push_back(line.at("kl_divergence").get<double>());
    }
    found.digest = run_.digest();
    return found;
  }
  Outcome distilled(const Options& more = {}, int ranks = 1) {
    std::filesystem::remove_all(run_.dir());
    run_.train(keys(more), ranks);
    return outcome();
  }
  std::string refusal(const Options& more) {
    std::filesystem::remove_all(run_.dir());
    return message_of<ConfigError>([&] { run_.train(keys(more)); });
  }

  ThreadRun teacher_;
  ThreadRun run_;
};

TEST_F(DistillationRun, LayoutsHaveTheSameBits) {
  const Outcome one = distilled();
  ASSERT_EQ(one.losses.size(), 6U);
  EXPECT_EQ(one, distilled({"parallel.dp=2"}, 2));
  EXPECT_EQ(one, distilled({"parallel.dp=4", "parallel.zero=2"}, 4));
  EXPECT_EQ(one, distilled({"parallel.dp=2", "parallel.zero=3"}, 2));
  EXPECT_EQ(one, distilled({"parallel.pp=2"}, 2));
  EXPECT_EQ(one, distilled({"parallel.pp=2", "parallel.schedule=zero_bubble"}, 2));
  EXPECT_EQ(one, distilled({"parallel.pp=2", "parallel.dp=2", "parallel.zero=1"}, 4));
  EXPECT_EQ(one, distilled({"train.recompute=full"}));
  EXPECT_EQ(one, distilled({"train.recompute=selective"}));
  EXPECT_EQ(one, distilled({"train.threads=2"}));
}

TEST_F(DistillationRun, ReportsBothPartsOfTheLoss) {
  distilled();
  for (const nlohmann::json& line : run_.metrics()) {
    const double divergence = line.at("kl_divergence");
    EXPECT_GT(divergence, 0);
    EXPECT_NEAR(line.at("loss").get<double>(),
                0.25 * line.at("cross_entropy").get<double>() + 0.75 * 9 * divergence, 1e-5);
  }
  EXPECT_THAT(run_.log(), AllOf(HasSubstr("the teacher is"), HasSubstr("weight 0.75")));
  std::filesystem::remove_all(run_.dir());
  run_.train();
  EXPECT_FALSE(run_.metrics().front().contains("kl_divergence"));
}

TEST_F(DistillationRun, TheStudentComesNearerToTheTeacher) {
  const Options longer = {"train.steps=40", "optimizer.lr=0.01", "distill.weight=1",
                          "distill.temperature=1"};
  const Outcome taught = distilled(longer);
  Options alone = longer;
  alone.emplace_back("distill.weight=0");  // reports the divergence and does not learn from it
  const Outcome plain = distilled(alone);
  EXPECT_DOUBLE_EQ(taught.parts[1], plain.parts[1]) << "both begin with the same weights";
  EXPECT_LT(taught.parts.back(), 0.75 * taught.parts[1]);
  EXPECT_LT(taught.parts.back(), plain.parts.back());
}

TEST_F(DistillationRun, AWeightOfZeroHasTheBitsOfARunWithoutATeacher) {
  const Outcome taught = distilled({"distill.weight=0"});
  std::filesystem::remove_all(run_.dir());
  run_.train({"model.layers=2", "train.log_every=1", "optimizer.clip=0.5"});
  std::vector<std::string> losses;
  for (const nlohmann::json& line : run_.metrics()) {
    losses.push_back(line.at("loss_bits").get<std::string>());
  }
  EXPECT_EQ(losses, taught.losses);
  EXPECT_EQ(run_.digest(), taught.digest);
}

TEST_F(DistillationRun, AResumeHasTheBitsOfARunWithoutAStop) {
  const Outcome whole = distilled();
  std::filesystem::remove_all(run_.dir());
  run_.train(keys({"train.steps=3", "optimizer.schedule.steps=6"}), 2);
  for (const char* other : {"distill.weight=0.5", "distill.temperature=2"}) {
    EXPECT_THAT(message_of<ConfigError>([&] { run_.train(keys({other})); }),
                HasSubstr(std::string(other).substr(0, std::string(other).find('='))));
  }
  ThreadRun wrong;
  wrong.train({"train.steps=1"});
  EXPECT_THAT(message_of<ConfigError>(
                  [&] { run_.train(keys({"distill.teacher=" + wrong.checkpoints().string()})); }),
              AllOf(HasSubstr("belongs to another run"), HasSubstr("distill.teacher")));
  EXPECT_THAT(message_of<ConfigError>([&] {
                run_.train({"model.layers=2", "train.log_every=1", "optimizer.clip=0.5"});
              }),
              HasSubstr("distill.teacher"));
  run_.train(keys());
  EXPECT_EQ(run_.digest(), whole.digest);
}

TEST_F(DistillationRun, MasksMixturesAndAdaptersWorkWithATeacher) {
  const std::string mixture =
      fmt::format("data.train=[{{path: {}, weight: 1, name: a}}, {{path: {}, weight: 1, name: b}}]",
                  run_.data().string(), teacher_.data().string());
  const Outcome mixed = distilled({mixture});
  EXPECT_EQ(mixed, distilled({mixture, "parallel.dp=2"}, 2));
  EXPECT_TRUE(run_.metrics().back().contains("sources"));
  ThreadRun base;
  base.train({"model.layers=2", "train.steps=1"});
  const Options tuned = {"checkpoint.init_from=" + base.checkpoints().string(),
                         "lora.products=all"};
  const Outcome adapted = distilled(tuned);
  Options two = tuned;
  two.emplace_back("parallel.dp=2");
  EXPECT_EQ(adapted, distilled(two, 2));
  const Options ramp = {"train.batch_ramp.from=2", "train.batch_ramp.by=1",
                        "train.batch_ramp.every=1", "train.precision=bf16"};
  (void)distilled(ramp);
}

TEST_F(DistillationRun, ThePlanCountsTheTeacher) {
  const RunConfig config = run_.config(keys());
  SelfCommunicator self;
  const RunConfig read = with_teacher(config, self);
  ASSERT_TRUE(read.distill.model.has_value());
  EXPECT_EQ(read.distill.model->hidden, 24);
  const Layout layout = make_layout(config, 1, 1);
  RunConfig without = config;
  without.distill = {};
  const MemoryPlan more = plan_memory(read, layout, 0, 0);
  const MemoryPlan less = plan_memory(without, layout, 0, 0);
  DeviceContext context(Device::cpu(), 1);
  const Teacher teacher(read.distill, DType::f32, context);
  EXPECT_EQ(more.parameters, less.parameters + teacher.bytes());
  EXPECT_GE(more.activations, less.activations);
  const std::int64_t later = more.activations + more.snapshot;
  const std::int64_t loading = 4 * parameter_count(*read.distill.model);
  EXPECT_GE(more.program - less.program, std::max<std::int64_t>(0, loading - later));
}

TEST_F(DistillationRun, RefusesATeacherThatDoesNotFit) {
  EXPECT_THAT(refusal({"model.vocab=300"}),
              AllOf(HasSubstr("vocabulary of 257"), HasSubstr("model.vocab is 300")));
  EXPECT_THAT(refusal({"model.context=16"}),
              AllOf(HasSubstr("context of 12"), HasSubstr("data.sequence is 16")));
  ThreadRun base;
  base.train({"train.steps=1"});
  ThreadRun adapters;
  adapters.train({"train.steps=1", "lora.products=all",
                  "checkpoint.init_from=" + base.checkpoints().string()});
  EXPECT_THAT(refusal({"distill.teacher=" + adapters.checkpoints().string()}),
              HasSubstr("adapters alone"));
  EXPECT_THAT(refusal({"distill.teacher=" + base.checkpoints().string(), "model.family=llama",
                       "model.ffn=24", "data.documents=separate"}),
              HasSubstr("learned positions"));
  EXPECT_THAT(message_of<NotFound>(
                  [&] { run_.train(keys({"distill.teacher=" + (run_.dir() / "x").string()})); }),
              HasSubstr("distill.teacher"));
}

// Both have 257 ids, which stand for other texts.
TEST_F(DistillationRun, RefusesATeacherWithAnotherTokenizer) {
  DatasetJob job;
  job.folder = teacher_.folder() / "other";
  job.format.vocab = 257;
  job.format.tokenizer = "letters";
  job.format.tokenizer_digest = std::string(64, 'a');
  job.shards.push_back({"shard", "test", 1, [&](ShardWriter& writer, const auto&) {
                          writer.append(std::vector<std::int32_t>(900, 65));
                          writer.end_document();
                          return PackCounts();
                        }});
  write_dataset(job, {});
  ThreadRun other;
  other.train({"train.steps=1", "data.train=" + job.folder.string()});
  EXPECT_THAT(refusal({"distill.teacher=" + other.checkpoints().string()}),
              AllOf(HasSubstr("'letters'"), HasSubstr("'bytes'"), HasSubstr("other texts")));
}

TEST_F(DistillationRun, RefusesADamagedTeacher) {
  std::vector<std::string> skipped;
  const std::filesystem::path step = find_step(teacher_.checkpoints(), skipped).path;
  const std::filesystem::path shard = step / "shard-00000.safetensors";
  std::string bytes = read_file(shard);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  write_file_durably(shard, bytes);
  EXPECT_THAT(message_of<DataError>([&] { run_.train(keys(), 2); }), HasSubstr("distill.teacher"));
}

TEST(DistillationConfig, RefusesWhatCannotBe) {
  const ThreadRun run;
  const auto refusal = [&](Options more) {
    more.emplace_back("distill.teacher=somewhere");
    return message_of<ConfigError>([&] { run.config(more); });
  };
  for (const char* temperature : {".nan", "nan", "0", "-1", ".inf", "1e9"}) {
    EXPECT_THAT(refusal({std::string("distill.temperature=") + temperature}),
                HasSubstr("distill.temperature"))
        << temperature;
  }
  for (const char* weight : {"-0.1", "1.5", ".nan"}) {
    EXPECT_THAT(refusal({std::string("distill.weight=") + weight}), HasSubstr("distill.weight"))
        << weight;
  }
  EXPECT_THAT(refusal({"parallel.tp=2"}), HasSubstr("parallel.tp 1"));
  EXPECT_THAT(message_of<ConfigError>([&] { run.config({"distill.weight=0.25"}); }),
              HasSubstr("there is no teacher"));
  EXPECT_FALSE(run.config().distill.is_on());
}

}  // namespace
}  // namespace trireme
