#include "src/train/recovery/data_origin.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"
#include "tests/train/small_data.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// The three documents have 10, 20 and 30 letters and an end each: tokens 0-10, 11-31 and 32-62.
// Samples of four tokens begin at multiples of four.
class DataOriginTest : public testing::Test {
 protected:
  DataOriginTest()
      : folder_(
            pack_documents(temp_.path(), "data",
                           {std::string(10, 'a'), std::string(20, 'b'), std::string(30, 'c')})) {
    config_.data.train = {{.name = "data", .path = folder_, .weights = {}}};
    config_.data.shuffle = "none";
    config_.data.sequence = 4;
    config_.train.micro_batch = 1;
    config_.train.global_batch = 3;
  }
  std::vector<std::string> origin(std::int64_t batch, const std::vector<double>& losses,
                                  std::size_t most) {
    std::vector<Dataset> datasets;
    for (const DataSource& source : config_.data.train) {
      datasets.emplace_back(source.path, read_manifest_text(source.path));
    }
    return data_origin(TrainingData(config_, std::move(datasets)), config_, batch, losses, most);
  }

  TempFolder temp_;
  std::filesystem::path folder_;
  RunConfig config_;
};

TEST_F(DataOriginTest, NamesSampleTokensAndDocuments) {
  // Batch 1 has the samples 3, 4 and 5: tokens 12-16, 16-20 and 20-24.
  EXPECT_THAT(origin(1, {4, 8, 6}, 1),
              ElementsAre("micro-batch 1, loss 2: sample 4 (shards/00000.h5 tokens 16 to 20, "
                          "document 1)"));
  EXPECT_THAT(origin(0, {1, 2, 3}, 1).front(),
              HasSubstr("sample 2 (shards/00000.h5 tokens 8 to 12, documents 0 to 1)"));
}

TEST_F(DataOriginTest, BordersOfDocumentsAreExact) {
  config_.train.global_batch = 1;
  EXPECT_THAT(origin(0, {1}, 1).front(), HasSubstr("document 0)"));
  EXPECT_THAT(origin(8, {1}, 1).front(), HasSubstr("tokens 32 to 36, document 2)"))
      << "its first token";
  EXPECT_THAT(origin(7, {1}, 1).front(), HasSubstr("tokens 28 to 32, documents 1 to 2)"));
}

TEST_F(DataOriginTest, TheLargestLossesComeFirst) {
  const auto order = [&](const std::vector<double>& losses, std::size_t most) {
    std::vector<std::string> numbers;
    for (const std::string& line : origin(0, losses, most)) {
      numbers.push_back(line.substr(0, line.find(',')));
    }
    return numbers;
  };
  EXPECT_THAT(order({1, 3, 2}, 9), ElementsAre("micro-batch 1", "micro-batch 2", "micro-batch 0"));
  EXPECT_THAT(order({1, std::nan(""), 2}, 2), ElementsAre("micro-batch 1", "micro-batch 2"));
  EXPECT_THAT(order({5, 7, 7}, 2), ElementsAre("micro-batch 1", "micro-batch 2"))
      << "of equal losses, the first";
}

TEST_F(DataOriginTest, AMicroBatchHasSeveralSamples) {
  config_.train.micro_batch = 2;
  config_.train.global_batch = 4;
  EXPECT_THAT(origin(1, {8, 16}, 1),
              ElementsAre("micro-batch 1, loss 2: sample 6 (shards/00000.h5 tokens 24 to 28, "
                          "document 1), sample 7 (shards/00000.h5 tokens 28 to 32, documents 1 to "
                          "2)"));
}

TEST_F(DataOriginTest, WithoutItsShardOnlyTheDocumentsAreUnknown) {
  std::filesystem::remove(folder_ / "shards/00000.h5");
  EXPECT_THAT(origin(1, {4, 8, 6}, 1).front(),
              HasSubstr("sample 4 (shards/00000.h5 tokens 16 to 20, documents unknown)"));
}

}  // namespace
}  // namespace trireme
