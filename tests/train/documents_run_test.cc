// Tests runs that keep the documents of a sample apart: a sample is as good as its documents alone,
// and the bits are the same in all layouts. Ranks are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/dataset_writing.h"
#include "io/data/tokenizer.h"
#include "src/train/load_model.h"
#include "tests/support/message_of.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

using testing::HasSubstr;
using Options = std::vector<std::string>;

// Writes a dataset of one shard. mask: empty for none; otherwise of the tokens of all documents.
std::filesystem::path write_documents(const std::filesystem::path& folder,
                                      const std::vector<std::string>& documents,
                                      const std::vector<std::uint8_t>& mask = {}) {
  DatasetJob job;
  job.folder = folder;
  job.format.vocab = 257;
  job.format.tokenizer = "bytes";
  job.format.tokenizer_digest = make_tokenizer("bytes")->digest();
  job.format.has_mask = !mask.empty();
  job.shards.push_back(
      {"documents", "test", 1, [&](ShardWriter& writer, const auto&) {
         std::size_t first = 0;
         for (const std::string& document : documents) {
           const std::vector<std::int32_t> tokens(document.begin(), document.end());
           mask.empty() ? writer.append(tokens)
                        : writer.append(tokens, std::span(mask).subspan(first, tokens.size()));
           writer.end_document();
           first += tokens.size();
         }
         return PackCounts();
       }});
  write_dataset(job, {});
  return folder;
}

// Documents of 5, 1, 9, 3 and 12 tokens, again and again.
std::vector<std::string> many_documents() {
  std::vector<std::string> documents;
  for (std::size_t i = 0; i < 90; ++i) {
    constexpr std::size_t kLengths[] = {5, 1, 9, 3, 12};
    documents.push_back(lesson(300).substr(3 * i % 280, kLengths[i % 5]));
  }
  return documents;
}

class DocumentsRun : public testing::Test {
 protected:
  struct Outcome {
    std::vector<std::string> losses;
    std::vector<double> norms;
    std::string digest;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };
  static Options llama(Options more) {
    more.insert(more.begin(),
                {"model.family=llama", "model.layers=2", "model.kv_heads=1", "model.ffn=24",
                 "data.shuffle=none", "train.log_every=1", "optimizer.clip=0.5"});
    return more;
  }
  Outcome run(const std::filesystem::path& data, Options more, int ranks = 1) {
    std::filesystem::remove_all(run_.dir());
    more.push_back("data.train=" + data.string());
    run_.train(llama(more), ranks);
    Outcome outcome;
    for (const nlohmann::json& line : run_.metrics()) {
      outcome.losses.push_back(line.at("loss_bits").get<std::string>());
      outcome.norms.push_back(line.at("grad_norm").get<double>());
    }
    outcome.digest = run_.digest();
    return outcome;
  }
  Outcome separate(Options more = {}, int ranks = 1) {
    more.emplace_back("data.documents=separate");
    return run(data_, std::move(more), ranks);
  }
  std::filesystem::path folder(const std::string& name) const { return run_.folder() / name; }

  ThreadRun run_;
  std::filesystem::path data_ = write_documents(folder("documents"), many_documents());
};

TEST_F(DocumentsRun, LayoutsHaveTheSameBits) {
  const Outcome one = separate();
  ASSERT_EQ(one.losses.size(), 6U);
  EXPECT_EQ(one, separate({"parallel.dp=2"}, 2));
  EXPECT_EQ(one, separate({"parallel.dp=4", "parallel.zero=2"}, 4));
  EXPECT_EQ(one, separate({"parallel.dp=2", "parallel.zero=3"}, 2));
  EXPECT_EQ(one, separate({"parallel.pp=2"}, 2));
  EXPECT_EQ(one, separate({"parallel.pp=2", "parallel.schedule=zero_bubble"}, 2));
  EXPECT_EQ(one, separate({"train.recompute=full"}));
  EXPECT_EQ(one, separate({"train.recompute=selective"}));
  EXPECT_NE(one.digest, run(data_, {"data.documents=joined"}).digest);
}

TEST_F(DocumentsRun, AlibiKeepsThemApartToo) {
  const Options alibi = {"model.family=gpt2", "model.kv_heads=0", "model.alibi=true",
                         "model.swiglu=true"};
  const auto with = [&](const Options& more) {
    Options all = alibi;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const Outcome one = separate(alibi);
  EXPECT_EQ(one, separate(with({"parallel.dp=2", "parallel.zero=3"}), 2));
  EXPECT_EQ(one, separate(with({"parallel.pp=2"}), 2));
  EXPECT_EQ(one, separate(with({"train.recompute=selective"})));
  EXPECT_NE(one.digest, run(data_, with({"data.documents=joined"})).digest);
}

TEST_F(DocumentsRun, EveryStageOfAPipelineKnowsTheDocuments) {
  const Options layers = {"model.layers=4"};
  const Outcome one = separate(layers);
  for (const Options& more :
       {Options{"parallel.pp=4"},
        {"parallel.pp=2", "parallel.schedule=interleaved", "parallel.virtual_stages=2"},
        {"parallel.pp=4", "parallel.schedule=gpipe", "train.recompute=full"}}) {
    Options all = layers;
    all.insert(all.end(), more.begin(), more.end());
    EXPECT_EQ(one, separate(all, more.front() == "parallel.pp=4" ? 4 : 2)) << more.back();
  }
}

// Tensor parallelism changes sums within products.
TEST_F(DocumentsRun, TensorParallelRanksKnowTheDocuments) {
  const Outcome one = separate({"model.kv_heads=2"});
  const Outcome two = separate({"model.kv_heads=2", "parallel.tp=2"}, 2);
  for (std::size_t i = 0; i < one.norms.size(); ++i) {
    EXPECT_NEAR(two.norms[i], one.norms[i], 1e-4);
  }
  EXPECT_EQ(two, separate({"model.kv_heads=2", "parallel.tp=2", "parallel.dp=2"}, 4));
}

TEST_F(DocumentsRun, AResumeHasTheBitsOfARunWithoutAStop) {
  const Outcome whole = separate();
  std::filesystem::remove_all(run_.dir());
  const Options options = {"data.documents=separate", "data.train=" + data_.string()};
  Options stopped = options;
  stopped.insert(stopped.end(), {"train.steps=3", "optimizer.schedule.steps=6"});
  run_.train(llama(stopped));
  EXPECT_THAT(message_of<ConfigError>([&] {
                Options joined = options;
                joined.front() = "data.documents=joined";
                run_.train(llama(joined));
              }),
              HasSubstr("data.documents: checkpoint \"separate\", run \"joined\""));
  run_.train(llama(options), 1);
  EXPECT_EQ(run_.digest(), whole.digest);
}

// The loss of a sample that holds three documents is the mean over their tokens, which is known
// from runs on each of them alone.
TEST_F(DocumentsRun, ASampleIsItsDocuments) {
  const std::vector<std::string> documents = {"one two", "three", "four x"};
  const Options once = {"model.context=32", "train.steps=1", "train.global_batch=1",
                        "optimizer.clip=0"};
  const auto step = [&](const std::filesystem::path& data, std::int64_t sequence,
                        const char* which) {
    Options options = once;
    options.push_back(fmt::format("data.sequence={}", sequence));
    options.emplace_back(which);
    run(data, options);
    return run_.metrics().front();
  };
  double sum = 0;
  std::int64_t targets = 0;
  for (const std::string& document : documents) {
    const auto alone = write_documents(folder("alone-" + document), {document});
    const std::int64_t count = std::ssize(document) - 1;  // a sample has one token more
    sum += step(alone, count, "data.documents=joined").at("loss").get<double>() *
           static_cast<double>(count);
    targets += count;
  }
  // The sample ends with the last document, whose last token predicts the next one's first.
  std::vector<std::string> packed = documents;
  packed.emplace_back("z");
  const auto all = write_documents(folder("all"), packed);
  const double loss = step(all, 18, "data.documents=separate").at("loss").get<double>();
  EXPECT_NEAR(loss, sum / static_cast<double>(targets), 1e-6);
  EXPECT_GT(std::abs(step(all, 18, "data.documents=joined").at("loss").get<double>() - loss), 1e-3);
}

// The first mask leaves out what separate documents ignore anyway.
TEST_F(DocumentsRun, LossMasksAndDocumentsLeaveOutTargetsTogether) {
  const std::vector<std::string> documents = many_documents();
  std::vector<std::uint8_t> within;  // all but the first token of each document
  std::vector<std::uint8_t> some;
  for (const std::string& document : documents) {
    for (std::size_t i = 0; i < document.size(); ++i) {
      within.push_back(i == 0 ? 0 : 1);
      some.push_back(i % 3 == 0 ? 0 : 1);
    }
  }
  const Options apart = {"data.documents=separate"};
  const auto masked = write_documents(folder("masked"), documents, within);
  EXPECT_EQ(run(masked, apart), separate()) << "separate documents ignore the same targets";
  const auto marked = write_documents(folder("some"), documents, some);
  const Outcome one = run(marked, apart);
  EXPECT_NE(one.digest, separate().digest);
  EXPECT_EQ(run(marked, {apart.front(), "parallel.dp=2"}, 2), one);
}

TEST_F(DocumentsRun, SourcesOfAMixtureHaveTheirOwnLosses) {
  const auto letters = write_documents(folder("letters"), std::vector<std::string>(200, "ab"));
  const std::string mixture = fmt::format(
      "data.train=[{{path: {}, weight: 1, name: many}}, "
      "{{path: {}, weight: 1, name: letters}}]",
      data_.string(), letters.string());
  const auto lines = [&](Options more, int ranks) {
    std::filesystem::remove_all(run_.dir());
    more.insert(more.end(), {mixture, "data.documents=separate"});
    run_.train(llama(more), ranks);
    std::vector<std::string> sources;
    for (const nlohmann::json& line : run_.metrics()) {
      sources.push_back(line.at("sources").dump());
    }
    return sources;
  };
  const std::vector<std::string> one = lines({}, 1);
  ASSERT_EQ(one.size(), 6U);
  EXPECT_EQ(lines({"parallel.dp=2"}, 2), one);
  EXPECT_EQ(lines({"parallel.pp=2"}, 2), one);
}

TEST_F(DocumentsRun, EvaluationsKeepDocumentsApart) {
  const auto validation = [&](const char* documents, int ranks, const char* layout) {
    run(data_,
        {"data.validation=" + data_.string(), "train.eval_every=6", "train.steps=6",
         "model.layers=3", std::string("data.documents=") + documents, layout},
        ranks);
    return run_.metrics().back().at("val_loss").get<double>();
  };
  const double one = validation("separate", 1, "parallel.dp=1");
  EXPECT_EQ(validation("separate", 2, "parallel.dp=2"), one);
  EXPECT_EQ(validation("separate", 3, "parallel.pp=3"), one);
  EXPECT_NE(validation("joined", 1, "parallel.dp=1"), one);
}

TEST_F(DocumentsRun, AModelKnowsHowItWasTrained) {
  DeviceContext context(Device::cpu(), 1);
  (void)separate({"train.steps=1"});
  EXPECT_TRUE(load_model(run_.checkpoints(), context, DType::f32).separates_documents);
  (void)run(data_, {"train.steps=1"});
  EXPECT_FALSE(load_model(run_.checkpoints(), context, DType::f32).separates_documents);
}

TEST_F(DocumentsRun, RefusesWhatKnowsNoDocuments) {
  const auto refusal = [&](Options options) {
    options.emplace_back("data.documents=separate");
    return message_of<ConfigError>([&] { (void)run_.config(options); });
  };
  EXPECT_THAT(refusal({}), HasSubstr("model.family gpt2 has learned positions"));
  EXPECT_THAT(refusal(llama({"model.attention_dropout=0.1"})),
              HasSubstr("model.attention_dropout"));
  EXPECT_THAT(
      refusal(llama({"train.attention=cudnn", "train.precision=bf16", "model.head_dim=64"})),
      HasSubstr("train.attention cudnn"));
  EXPECT_THAT(message_of<ConfigError>([&] { (void)run_.config({"data.documents=apart"}); }),
              HasSubstr("joined|separate"));
}

}  // namespace
}  // namespace trireme
