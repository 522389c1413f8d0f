#include "slurm/doctor/comparisons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<RankFacts> two_nodes() {
  RankFacts first{"n1", "0.1 abc 1", "Open MPI 4", "avx512", 0, 2, 4, 2, true};
  RankFacts second = first;
  second.host = "n2";
  return {first, second};
}

TEST(Comparisons, AlikeIsFine) {
  const auto ranks = two_nodes();
  EXPECT_THAT(compare_versions(ranks, "elastic"), IsEmpty());
  EXPECT_THAT(compare_clocks(ranks), IsEmpty());
  EXPECT_THAT(check_cores(ranks), IsEmpty());
  EXPECT_THAT(check_shared_folder(ranks), IsEmpty());
}

TEST(Comparisons, Versions) {
  auto ranks = two_nodes();
  ranks[1].build = "0.1 abc 2";
  ranks[1].kernels = "avx2";
  ranks[1].mpi = "Open MPI 5";
  const auto found = compare_versions(ranks, "elastic");
  ASSERT_THAT(found, SizeIs(3));
  for (const Finding& finding : found) {
    EXPECT_EQ(finding.severity, Severity::error);
    EXPECT_EQ(finding.where, "n2");
  }
  EXPECT_THAT(found[2].remedy, HasSubstr("TRIREME_KERNELS=avx2"));
  EXPECT_EQ(compare_versions(ranks, "fast")[0].severity, Severity::warning);
}

TEST(Comparisons, Clocks) {
  auto ranks = two_nodes();
  ranks[1].clock_ahead_seconds = -3600;
  const auto found = compare_clocks(ranks);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].what, HasSubstr("behind"));
}

TEST(Comparisons, Cores) {
  auto ranks = two_nodes();
  ranks[0].threads = 4;
  auto found = check_cores(ranks);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].what, HasSubstr("2 ranks of 4 threads share 4 cores"));
  ranks = two_nodes();
  ranks[0].threads = 1;
  ranks[0].cores = 64;
  found = check_cores(ranks);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_THAT(found[0].what, HasSubstr("idle"));
}

TEST(Comparisons, AFolderOfOneNode) {
  auto ranks = two_nodes();
  ranks[1].shares_checkpoint_dir = false;
  EXPECT_NE(check_shared_folder(ranks).at(0).what.find("checkpoint.dir"), std::string::npos);
  ranks[1].shares_checkpoint_dir = true;
  ranks[1].shares_run_dir = false;
  EXPECT_THAT(check_shared_folder(ranks), SizeIs(1));
}

TEST(Comparisons, ThroughJson) {
  const RankFacts facts = two_nodes()[1];
  const auto json = nlohmann::json::parse(to_json(facts).dump());
  EXPECT_EQ(to_json(facts_from_json(json)), json);
}

}  // namespace
}  // namespace trireme
