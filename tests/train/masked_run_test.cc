// Tests runs on datasets with a loss mask: what is masked is as if it had never been a target, and
// the bits are the same in all layouts. Ranks are threads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/dataset_writing.h"
#include "io/data/tokenizer.h"
#include "tests/train/thread_run.h"

namespace trireme {
namespace {

constexpr std::int64_t kTime = 8;

// Writes a dataset of one shard. mask: empty for none.
std::filesystem::path write_tokens(const std::filesystem::path& folder,
                                   const std::vector<std::int32_t>& tokens,
                                   const std::vector<std::uint8_t>& mask) {
  DatasetJob job;
  job.folder = folder;
  job.format.vocab = 257;
  job.format.tokenizer = "bytes";
  job.format.tokenizer_digest = make_tokenizer("bytes")->digest();
  job.format.has_mask = !mask.empty();
  job.shards.push_back(
      {"tokens", "test", std::ssize(tokens), [&](ShardWriter& writer, const auto&) {
         mask.empty() ? writer.append(tokens) : writer.append(tokens, mask);
         return PackCounts();
       }});
  write_dataset(job, {});
  return folder;
}

// Blocks [b] of kTime tokens that all begin with the same one, and that token once more. Sample b
// of such a dataset is block b.
std::vector<std::int32_t> blocks(const std::vector<int>& numbers) {
  std::vector<std::int32_t> tokens;
  for (const int b : numbers) {
    tokens.push_back('x');
    for (std::int64_t t = 1; t < kTime; ++t) {
      tokens.push_back(static_cast<std::int32_t>('a' + (7 * b + t * (b % 3 + 1)) % 26));
    }
  }
  tokens.push_back('x');
  return tokens;
}

// Returns the mask for whole blocks: of block b, the targets are the tokens behind its first one.
std::vector<std::uint8_t> block_mask(std::int64_t count, int every) {
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(count * kTime + 1), 0);
  for (std::int64_t b = 0; b < count; ++b) {
    for (std::int64_t t = 1; t <= kTime && b % every == 0; ++t) {
      mask[static_cast<std::size_t>(b * kTime + t)] = 1;
    }
  }
  return mask;
}

std::vector<int> numbers(int count, int step) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(i * step);
  }
  return all;
}

class MaskedRun : public testing::Test {
 protected:
  struct Result {
    std::vector<std::string> losses;
    std::vector<double> norms;
    std::string digest;
    friend bool operator==(const Result&, const Result&) = default;
  };
  Result run(const std::filesystem::path& data, std::vector<std::string> more, int ranks = 1) {
    std::filesystem::remove_all(run_.dir());
    more.insert(more.end(), {"data.train=" + data.string(), "data.shuffle=none",
                             "train.log_every=1", "optimizer.clip=0.5"});
    run_.train(more, ranks);
    Result result;
    for (const nlohmann::json& line : run_.metrics()) {
      result.losses.push_back(line.at("loss_bits").get<std::string>());
      result.norms.push_back(line.at("grad_norm").get<double>());
    }
    result.digest = run_.digest();
    return result;
  }
  std::filesystem::path folder(const char* name) const { return run_.folder() / name; }

  ThreadRun run_;
};

TEST_F(MaskedRun, AMaskOfAllTokensChangesNoBit) {
  const std::vector<std::int32_t> tokens = blocks(numbers(40, 1));
  const auto plain = write_tokens(folder("plain"), tokens, {});
  const auto masked =
      write_tokens(folder("masked"), tokens, std::vector<std::uint8_t>(tokens.size(), 1));
  const Result expected = run(plain, {});
  ASSERT_EQ(expected.losses.size(), 6U);
  EXPECT_EQ(run(masked, {}), expected);
}

// The mean over 16 tokens of which 8 count is that of the 8 alone, to the bit, because a factor of
// 2 rounds nothing.
TEST_F(MaskedRun, MaskedSamplesAreAsIfTheyWereNotThere) {
  const auto masked = write_tokens(folder("masked"), blocks(numbers(40, 1)), block_mask(40, 2));
  const auto alone = write_tokens(folder("alone"), blocks(numbers(20, 2)), {});
  const Result expected = run(alone, {"train.global_batch=1"});
  EXPECT_EQ(run(masked, {"train.global_batch=2"}), expected);
  EXPECT_EQ(run(masked, {"train.global_batch=2", "parallel.dp=2"}, 2), expected);
  const Result scaled = run(masked, {"train.global_batch=2", "train.micro_batch=2"});
  EXPECT_NEAR(scaled.norms.back(), expected.norms.back(), 1e-5);
}

TEST_F(MaskedRun, LayoutsHaveTheSameBits) {
  const std::vector<std::int32_t> tokens = blocks(numbers(40, 1));
  std::vector<std::uint8_t> mask(tokens.size());
  for (std::size_t i = 0; i < mask.size(); ++i) {
    mask[i] = i % 5 < 2 || i % 7 == 0 ? 1 : 0;
  }
  const auto data = write_tokens(folder("some"), tokens, mask);
  const std::string layers = "model.layers=2";
  const Result one = run(data, {layers});
  EXPECT_EQ(run(data, {layers, "parallel.dp=2"}, 2), one);
  EXPECT_EQ(run(data, {layers, "parallel.dp=4", "parallel.zero=2"}, 4), one);
  EXPECT_EQ(run(data, {layers, "parallel.pp=2"}, 2), one);
  EXPECT_EQ(run(data, {layers, "parallel.pp=2", "parallel.dp=2", "parallel.zero=1"}, 4), one);
  // Tensor parallelism changes sums within products.
  const Result two = run(data, {layers, "parallel.tp=2"}, 2);
  for (std::size_t i = 0; i < one.norms.size(); ++i) {
    EXPECT_NEAR(two.norms[i], one.norms[i], 1e-4);
  }
  EXPECT_EQ(run(data, {layers, "parallel.tp=2", "parallel.dp=2"}, 4), two);
  EXPECT_EQ(run(data, {layers, "parallel.tp=2", "parallel.pp=2"}, 4), two);
}

TEST_F(MaskedRun, EvaluationsTakeTheMeanOfWhatCounts) {
  const auto masked = write_tokens(folder("masked"), blocks(numbers(40, 1)), block_mask(40, 2));
  const auto alone = write_tokens(folder("alone"), blocks(numbers(20, 2)), {});
  const auto validation = [&](const std::filesystem::path& data, int ranks, const char* layout) {
    std::filesystem::remove_all(run_.dir());
    run_.train({"data.validation=" + data.string(), "train.eval_every=6", "model.layers=2", layout},
               ranks);
    return run_.metrics().back().at("val_loss").get<double>();
  };
  const double expected = validation(alone, 1, "parallel.dp=1");
  EXPECT_NEAR(validation(masked, 1, "parallel.dp=1"), expected, 1e-6);
  EXPECT_EQ(validation(masked, 2, "parallel.pp=2"), validation(masked, 2, "parallel.dp=2"));
}

TEST_F(MaskedRun, StepsWithoutATargetChangeNothingButDecay) {
  const auto data = write_tokens(folder("some"), blocks(numbers(40, 1)),
                                 std::vector<std::uint8_t>(40 * kTime + 1, 0));
  const Result result = run(data, {});
  EXPECT_EQ(result.losses, std::vector<std::string>(6, result.losses.front()));
  EXPECT_EQ(result.norms, std::vector<double>(6, 0.0));
}

}  // namespace
}  // namespace trireme
