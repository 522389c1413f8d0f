#include "src/plan/simulate/job_faults.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "src/base/philox.h"

namespace trireme {
namespace {

JobModel faulty_job() {
  JobModel model;
  model.nodes = 1000;
  model.group_nodes = 10;
  model.days = 100;
  model.rates = {"none", 10, 5, 20, 30, 2, 73, 0, 1};
  return model;
}

double count(const JobFaults& faults, JobFaultKind kind) {
  return static_cast<double>(
      std::count_if(faults.faults.begin(), faults.faults.end(),
                    [&](const JobFault& fault) { return fault.kind == kind; }));
}

bool same(const JobFault& a, const JobFault& b) {
  return a.at == b.at && a.kind == b.kind && a.node == b.node && a.mark == b.mark;
}

TEST(JobFaults, ComeAtTheirRates) {
  const JobFaults faults = draw_faults(faulty_job(), 1, 0);
  // Poisson: within four standard deviations.
  EXPECT_NEAR(count(faults, JobFaultKind::process), 1000, 4 * std::sqrt(1000));
  EXPECT_NEAR(count(faults, JobFaultKind::hang), 500, 4 * std::sqrt(500));
  EXPECT_NEAR(count(faults, JobFaultKind::node), 2000, 4 * std::sqrt(2000));
  EXPECT_NEAR(count(faults, JobFaultKind::group), 300, 4 * std::sqrt(300));
  EXPECT_NEAR(count(faults, JobFaultKind::straggler), 200, 4 * std::sqrt(200));
  EXPECT_NEAR(count(faults, JobFaultKind::site), 20, 4 * std::sqrt(20));
  EXPECT_TRUE(std::is_sorted(faults.faults.begin(), faults.faults.end(),
                             [](const JobFault& a, const JobFault& b) { return a.at < b.at; }));
}

TEST(JobFaults, DependOnSeedAndDrawAlone) {
  const JobModel model = faulty_job();
  const JobFaults first = draw_faults(model, 1, 0);
  const JobFaults again = draw_faults(model, 1, 0);
  ASSERT_EQ(first.faults.size(), again.faults.size());
  EXPECT_TRUE(std::equal(first.faults.begin(), first.faults.end(), again.faults.begin(), same));
  EXPECT_FALSE(same(first.faults[0], draw_faults(model, 2, 0).faults[0]));
  EXPECT_FALSE(same(first.faults[0], draw_faults(model, 1, 1).faults[0]));
}

// Variants of a job are compared under the same faults.
TEST(JobFaults, SparesAddFaultsAndChangeNone) {
  JobModel model = faulty_job();
  const JobFaults before = draw_faults(model, 1, 0);
  model.spares = 100;
  JobFaults after = draw_faults(model, 1, 0);
  EXPECT_GT(after.faults.size(), before.faults.size());
  std::erase_if(after.faults, [](const JobFault& fault) {
    return fault.node >= (fault.kind == JobFaultKind::group ? 100 : 1000);
  });
  ASSERT_EQ(after.faults.size(), before.faults.size());
  EXPECT_TRUE(std::equal(after.faults.begin(), after.faults.end(), before.faults.begin(), same));
}

TEST(JobFaults, LemonsFailMoreOftenAndTheMeanStays) {
  JobModel model = faulty_job();
  model.rates.lemon_share = 0.02;
  model.rates.lemon_factor = 50;
  const JobFaults faults = draw_faults(model, 1, 0);
  EXPECT_NEAR(count(faults, JobFaultKind::node), 2000, 4 * std::sqrt(2000));
  std::vector<int> by_node(1000);
  for (const JobFault& fault : faults.faults) {
    by_node[static_cast<std::size_t>(fault.node)] += fault.kind == JobFaultKind::node ? 1 : 0;
  }
  std::sort(by_node.rbegin(), by_node.rend());
  const int lemons = std::accumulate(by_node.begin(), by_node.begin() + 20, 0);
  EXPECT_NEAR(lemons, 2000 * (20 * 50) / (20.0 * 50 + 980), 150);
}

TEST(JobFaults, TimesVaryAroundTheirMean) {
  double total = 0;
  double squares = 0;
  constexpr int kTimes = 20'000;
  for (int i = 0; i < kTimes; ++i) {
    const double factor =
        time_factor({0, JobFaultKind::node, 0, mix64(static_cast<std::uint64_t>(i))}, 2, 0.5);
    EXPECT_GT(factor, 0);
    total += factor / kTimes;
    squares += std::log(factor) * std::log(factor) / kTimes;
  }
  EXPECT_NEAR(total, 1, 0.02);
  EXPECT_NEAR(squares, 0.25 + 0.125 * 0.125, 0.01);
  EXPECT_EQ(time_factor({0, JobFaultKind::node, 0, 5}, 2, 0), 1);
}

}  // namespace
}  // namespace trireme
