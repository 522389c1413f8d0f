// Tests that the ranks of an evaluation divide its micro-batches. The losses are made up from the
// tokens, so that every sample has a known one. Ranks are threads.
#include "src/train/engine/evaluate.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/small_data.h"

namespace trireme {
namespace {

constexpr std::int64_t kSequence = 4;

// Returns the sum of the targets of a micro-batch.
double sum_of(const ConstView& targets) {
  double sum = 0;
  for (std::int64_t i = 0; i < targets.count; ++i) {
    sum += as<std::int32_t>(targets)[i];
  }
  return sum;
}

class EvaluateTest : public testing::Test {
 protected:
  // 41 bytes and the end of the document make ten samples.
  EvaluateTest() {
    for (char c = 0; c < 41; ++c) {
      text_.push_back(static_cast<char>('0' + c));
    }
    folder_ = pack_documents(temp_.path(), "data", {text_});
  }

  // Returns the result on every rank, and keeps the sizes of all micro-batches, in any order.
  std::vector<Evaluation> run(int ranks, std::int64_t micro_batch, std::int64_t max_samples) {
    std::vector<Evaluation> results(static_cast<std::size_t>(ranks));
    passes_.assign(static_cast<std::size_t>(ranks), 0);
    ThreadWorld(ranks).run([&](Communicator& comm) {
      const auto rank = static_cast<std::size_t>(comm.rank());
      const Dataset dataset = Dataset::open(folder_);
      const LossesOf losses = [&](const TokenSource& tokens, std::int64_t batch, std::int64_t count,
                                  double* to) {
        for (std::int64_t m = 0; m < count; ++m) {
          const LoadedMicroBatch loaded = tokens();
          EXPECT_EQ(loaded.batch, batch);
          to[m] = sum_of(loaded.targets);
          ++passes_[rank];
        }
      };
      results[rank] = evaluate(dataset, {kSequence, micro_batch, max_samples}, comm, losses);
    });
    return results;
  }
  // Returns the mean over the targets of the first samples.
  double mean(std::int64_t samples) const {
    double sum = 0;
    for (std::int64_t i = 1; i <= samples * kSequence; ++i) {
      sum += '0' + static_cast<double>(i);
    }
    return sum / static_cast<double>(samples * kSequence);
  }

  TempFolder temp_;
  std::string text_;
  std::filesystem::path folder_;
  std::vector<int> passes_;  // micro-batches of each rank
};

TEST_F(EvaluateTest, IsTheMeanOfTheFirstSamplesOnAnyRanks) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const std::int64_t micro_batch : {1, 2, 3, 10, 100}) {
      for (const std::int64_t samples : {1, 4, 7, 10}) {
        for (const Evaluation& result : run(ranks, micro_batch, samples)) {
          EXPECT_EQ(result.samples, samples);
          EXPECT_EQ(result.tokens, samples * kSequence);
          EXPECT_DOUBLE_EQ(result.loss, mean(samples))
              << ranks << " ranks, " << micro_batch << " at a time, " << samples;
          EXPECT_EQ(result.fault, "");
        }
      }
    }
  }
}

TEST_F(EvaluateTest, UsesNoMoreThanTheDatasetHas) {
  EXPECT_EQ(run(2, 3, 1000).front().samples, 10);
}

// An interleaved pipeline keeps the tokens of a group of micro-batches until its last chunk.
TEST_F(EvaluateTest, KeepsTheTokensOfAllMicroBatchesInFlight) {
  constexpr std::int64_t kGroup = 4;
  const LossesOf losses = [](const TokenSource& tokens, std::int64_t, std::int64_t count,
                             double* to) {
    for (std::int64_t first = 0; first < count; first += kGroup) {
      std::vector<LoadedMicroBatch> group;
      for (std::int64_t m = first; m < std::min(first + kGroup, count); ++m) {
        group.push_back(tokens());
      }
      for (const LoadedMicroBatch& loaded : group) {
        *to++ = sum_of(loaded.targets);
      }
    }
  };
  ThreadWorld(1).run([&](Communicator& comm) {
    const Dataset dataset = Dataset::open(folder_);
    const Evaluation result = evaluate(dataset, {kSequence, 1, 10, kGroup}, comm, losses);
    EXPECT_EQ(result.fault, "");
    EXPECT_DOUBLE_EQ(result.loss, mean(10));
  });
}

// Ranks gather parameters together in every pass, so a rank with less to do takes part in all
// passes.
TEST_F(EvaluateTest, AllRanksMakeEquallyManyPasses) {
  run(4, 3, 10);  // three whole micro-batches and one of a single sample, which all compute
  EXPECT_THAT(passes_, testing::Each(2));
  run(2, 2, 10);
  EXPECT_THAT(passes_, testing::Each(3));
}

TEST_F(EvaluateTest, ARankThatCannotReadTakesPartAndSaysSo) {
  // Flips a token within the shard, so that its digest does not hold.
  const Dataset dataset = Dataset::open(folder_);
  const ShardEntry& shard = dataset.manifest().shards.front();
  {
    std::fstream file(folder_ / shard.path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(shard.data_offset + 3);
    file.put('\x7F');
  }
  const std::vector<Evaluation> results = run(2, 2, 10);
  EXPECT_THAT(passes_, testing::Each(3));
  for (const Evaluation& result : results) {
    EXPECT_THAT(result.fault, testing::HasSubstr(shard.path));
    EXPECT_FALSE(result.is_io_fault);
  }
}

TEST(CheckSamplesRead, ThrowsTheWorstFaultOnAllRanks) {
  ThreadWorld(3, {"a", "b", "c"}).run([](Communicator& comm) {
    Evaluation result;
    EXPECT_NO_THROW(check_samples_read(result, comm));
    result.fault = comm.rank() == 1 ? "shard 5 is damaged" : "";
    EXPECT_THAT(
        message_of<DataError>([&] { check_samples_read(result, comm); }),
        testing::AllOf(testing::HasSubstr("rank 1 (b)"), testing::HasSubstr("shard 5 is damaged")));
    result.fault = comm.rank() == 0 ? "" : "lost";
    result.is_io_fault = comm.rank() == 2;
    EXPECT_THAT(message_of<IoError>([&] { check_samples_read(result, comm); }),
                testing::HasSubstr("rank 2 (c)"));
  });
}

}  // namespace
}  // namespace trireme
