#include "benchmarks/loader/workload.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "benchmarks/loader/sample_files.h"
#include "src/base/error.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

TEST(Workload, RatesAreThoseOfMlperfStorage) {
  // docs: MLPerf Storage's emulation of an H100 asks 3.18, 0.81 and 0.2 GB/s.
  EXPECT_NEAR(find_workload("unet3d", "h100").needed_bytes_per_s() / 1e9, 3.18, 0.005);
  EXPECT_NEAR(find_workload("cosmoflow", "h100").needed_bytes_per_s() / 1e9, 0.81, 0.005);
  EXPECT_NEAR(find_workload("resnet50", "h100").needed_bytes_per_s() / 1e9, 0.2, 0.006);
  EXPECT_EQ(find_workload("cosmoflow", "a100").least_utilization, 0.7);
  EXPECT_THROW(find_workload("llm", "a100"), ConfigError);
}

TEST(Workload, SizesHaveTheMeanAndTheSpread) {
  const EmulatedWorkload workload = find_workload("cosmoflow", "h100");
  constexpr int kSamples = 20'000;
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < kSamples; ++i) {
    const double bytes = static_cast<double>(workload.bytes_of(i)) - workload.sample_bytes;
    sum += bytes;
    squares += bytes * bytes;
  }
  // Four standard errors.
  const double error = workload.sample_bytes_spread / std::sqrt(kSamples);
  EXPECT_NEAR(sum / kSamples, 0, 4 * error);
  EXPECT_NEAR(std::sqrt(squares / kSamples), workload.sample_bytes_spread, 4 * error);
  EXPECT_EQ(workload.bytes_of(7), workload.bytes_of(7));
  EXPECT_GE(find_workload("cosmoflow", "h100").scaled(1e-9).bytes_of(0), 64);
}

TEST(Workload, AScaleKeepsTheRate) {
  const EmulatedWorkload workload = find_workload("unet3d", "a100");
  EXPECT_NEAR(workload.scaled(0.01).needed_bytes_per_s(), workload.needed_bytes_per_s(), 1);
}

TEST(SampleFiles, ReadersFindWhatWasWritten) {
  const TempFolder folder;
  EmulatedWorkload workload = find_workload("unet3d", "h100").scaled(1e-5);
  workload.threads = 3;
  const SampleFiles files(folder.path(), workload, 14);
  for (int rank = 0; rank < 2; ++rank) {
    files.write(rank, 2);
  }
  std::int64_t stored = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    stored += static_cast<std::int64_t>(file.file_size());
  }
  EXPECT_EQ(stored, files.bytes());
  SampleReader reader(files, workload, 1, 2);
  for (int batch = 0; batch < 5; ++batch) {  // more than an epoch
    reader.next();
  }
}

TEST(SampleFiles, ManySamplesShareAFile) {
  const TempFolder folder;
  EmulatedWorkload workload = find_workload("resnet50", "h100").scaled(0.001);
  const SampleFiles files(folder.path(), workload, 1300);
  files.write(0, 1);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "sample-00000001"));
  std::vector<char> buffer;
  for (const std::int64_t sample : {0, 1250, 1251, 1299}) {
    EXPECT_NO_THROW(files.read(sample, buffer));
  }
}

TEST(SampleFiles, AWrongSampleIsFound) {
  const TempFolder folder;
  const EmulatedWorkload workload = find_workload("cosmoflow", "h100").scaled(1e-4);
  const SampleFiles files(folder.path(), workload, 4);
  files.write(0, 1);
  File file = File::open_to_update(folder.path() / "sample-00000002");
  file.write_at(file.size() - 3, "x", 1);
  std::vector<char> buffer;
  EXPECT_NO_THROW(files.read(1, buffer));
  EXPECT_THROW(files.read(2, buffer), DeviceError);
  SampleReader reader(files, workload, 0, 1);
  const auto epoch = [&] {
    for (int i = 0; i < 4; ++i) {
      reader.next();
    }
  };
  EXPECT_THROW(epoch(), DeviceError);
  std::filesystem::remove(folder.path() / "sample-00000001");
  EXPECT_THROW(files.read(1, buffer), NotFound);
}

}  // namespace
}  // namespace trireme
