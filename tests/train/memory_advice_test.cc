// Tests that advice is the cheapest change under which the ranks of every host fit, and that it is
// true: the plan of the advised configuration fits.
#include "src/train/memory/memory_advice.h"

#include <algorithm>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

RunConfig config_of(int dp, std::int64_t micro_batch) {
  RunConfig c;
  c.model.layers = 4;
  c.model.hidden = 256;
  c.model.heads = 8;
  c.model.vocab = 2000;
  c.model.context = 256;
  c.model.complete();
  c.data.sequence = 256;
  c.train.steps = 1;
  c.train.micro_batch = micro_batch;
  c.train.global_batch = micro_batch * 8;
  c.parallel.dp = {dp, ""};
  c.parallel.bucket_bytes = 100000;
  return c;
}

class MemoryAdviceTest : public testing::Test {
 protected:
  explicit MemoryAdviceTest(int ranks = 4, std::int64_t micro_batch = 32)
      : ranks_(ranks), config_(config_of(ranks, micro_batch)) {}

  Layout layout() const { return make_layout(config_, ranks_, ranks_); }
  std::vector<std::int64_t> resident() const {
    return std::vector<std::int64_t>(static_cast<std::size_t>(ranks_), 1 << 20);
  }
  // Returns one host that has this much memory for all ranks.
  std::vector<HostShare> host(std::int64_t available) const {
    HostShare host{"host node7", std::vector<int>(static_cast<std::size_t>(ranks_)), available,
                   "a test", 0};
    std::iota(host.ranks.begin(), host.ranks.end(), 0);
    return {host};
  }
  std::int64_t needed(const RunConfig& config) const {
    return to_come(host(0).front(),
                   plan_memory_of_all(config, make_layout(config, ranks_, ranks_), resident()),
                   resident());
  }
  std::string advice(std::int64_t available) const {
    const auto found = memory_advice(config_, layout(), host(available), resident());
    if (!found) {
      return "nothing";
    }
    EXPECT_LE(needed(found->config), available) << found->keys;
    return found->keys;
  }
  template <class Change>
  std::int64_t needed_after(Change change) const {
    RunConfig changed = config_;
    change(changed);
    return needed(changed);
  }

  int ranks_;
  RunConfig config_;
};

TEST_F(MemoryAdviceTest, TheCheapestChangeThatIsEnoughIsTheFirstInTheirOrder) {
  const std::int64_t selective =
      needed_after([](RunConfig& c) { c.train.recompute = "selective"; });
  const std::int64_t full = needed_after([](RunConfig& c) { c.train.recompute = "full"; });
  ASSERT_LT(selective, needed(config_));
  ASSERT_LT(full, selective);
  EXPECT_EQ(advice(needed(config_) - 1), "train.recompute=selective");
  EXPECT_EQ(advice(selective), "train.recompute=selective");
  // Activations are most of what this model takes.
  EXPECT_EQ(advice(selective - 1), "train.recompute=full");
  EXPECT_EQ(advice(full), "train.recompute=full");
}

TEST_F(MemoryAdviceTest, ASmallerMicroBatchComesBeforeSharedParameters) {
  config_.train.recompute = "full";
  const std::int64_t zero2 = needed_after([](RunConfig& c) { c.parallel.zero = 2; });
  EXPECT_EQ(advice(needed(config_) - 1), "parallel.zero=1");
  EXPECT_THAT(advice(zero2 - 1), HasSubstr("train.micro_batch="));
}

TEST_F(MemoryAdviceTest, SeveralChangesWhereNoneAloneIsEnough) {
  std::int64_t least_alone = needed(config_);
  for (const char* kind : {"selective", "full"}) {
    least_alone =
        std::min(least_alone, needed_after([&](RunConfig& c) { c.train.recompute = kind; }));
  }
  const std::string several = advice(needed_after([](RunConfig& c) {
    c.train.recompute = "full";
    c.parallel.zero = 2;
    c.train.micro_batch = 1;
  }));
  EXPECT_THAT(several, AllOf(HasSubstr("train.recompute=full"), HasSubstr("parallel.zero=")));
  EXPECT_EQ(advice(1 << 20), "nothing");
}

TEST_F(MemoryAdviceTest, SaysWhatIsMissingWhereAndWhatToDo) {
  const std::int64_t all = needed(config_);
  const std::vector<MemoryPlan> plans = plan_memory_of_all(config_, layout(), resident());
  EXPECT_EQ(memory_fault(config_, layout(), host(all), plans, resident()), std::nullopt);
  const auto fault = memory_fault(config_, layout(), host(all - 1), plans, resident());
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(*fault, AllOf(HasSubstr("host node7 has"), HasSubstr("a test"), HasSubstr("4 ranks"),
                            HasSubstr("activations"), HasSubstr("train.recompute=selective"),
                            HasSubstr("run.memory_check=off")));
  EXPECT_THAT(*memory_fault(config_, layout(), host(1000), plans, resident()),
              HasSubstr("more hosts"));
}

// Each host has memory for half of the ranks.
TEST_F(MemoryAdviceTest, HostsDoNotHelpEachOther) {
  const std::vector<MemoryPlan> plans = plan_memory_of_all(config_, layout(), resident());
  const std::int64_t each = needed(config_) / 4;
  const std::vector<HostShare> even = {{"host a", {0, 1}, 2 * each, "", 0},
                                       {"host b", {2, 3}, 2 * each, "", 0}};
  EXPECT_EQ(memory_fault(config_, layout(), even, plans, resident()), std::nullopt);
  const std::vector<HostShare> uneven = {{"host a", {0, 1, 2}, 2 * each, "", 0},
                                         {"host b", {3}, 9 * each, "", 0}};
  const auto fault = memory_fault(config_, layout(), uneven, plans, resident());
  ASSERT_TRUE(fault.has_value());
  EXPECT_THAT(*fault, AllOf(HasSubstr("host a"), HasSubstr("3 ranks")));
}

// New checkpoints reuse the memory of those of an earlier attempt; nothing else can use it.
TEST_F(MemoryAdviceTest, WhatCheckpointsHoldIsTakenOver) {
  std::vector<MemoryPlan> plans = plan_memory_of_all(config_, layout(), resident());
  for (MemoryPlan& plan : plans) {
    plan.snapshot = 1000;
  }
  std::vector<HostShare> hosts = host(1'000'000'000);
  const std::int64_t all = to_come(hosts[0], plans, resident());
  hosts[0].held = 300;
  EXPECT_EQ(to_come(hosts[0], plans, resident()), all - 300);
  hosts[0].held = 1'000'000;
  EXPECT_EQ(to_come(hosts[0], plans, resident()), all - 4 * 1000);
}

class OneSequenceTest : public MemoryAdviceTest {
 protected:
  OneSequenceTest() : MemoryAdviceTest(4, 1) {
    config_.model.vocab = 200000;
    config_.data.sequence = config_.model.context = 8;
    config_.train.recompute = "full";
    config_.parallel.zero = 3;
  }
};

// The embedding is most of the model. After all other changes, the ranks share its rows.
TEST_F(OneSequenceTest, MoreTensorOrPipelineRanksComeLast) {
  EXPECT_THAT(advice(needed(config_) - 1), HasSubstr("parallel.dp="));
}

TEST(MemoryTable, OfManyRanksNamesTheLargest) {
  std::vector<MemoryPlan> ranks(100);
  ranks[42].gradients = std::int64_t{5} << 30;
  const auto [unit, lines] = memory_table(ranks);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(unit, "GiB");
  EXPECT_THAT(lines[1], AllOf(HasSubstr("42"), HasSubstr("5.00")));
  EXPECT_THAT(lines[2], HasSubstr("100 ranks"));
  EXPECT_EQ(memory_table(std::vector<MemoryPlan>(16)).lines.size(), 17U);
  EXPECT_EQ(memory_table(std::vector<MemoryPlan>(16)).unit, "MiB");
}

// The log indents the table.
TEST(MemoryTable, FitsEightyColumns) {
  std::array<std::int64_t, MemoryPlan::kParts> parts{};
  parts.fill(std::int64_t{999} << 30);
  for (const std::string& line : memory_table({MemoryPlan::of(parts)}).lines) {
    EXPECT_LE(line.size(), 78U) << line;
  }
}

TEST(MemoryPlan, GoesThroughNumbers) {
  MemoryPlan plan;
  plan.parameters = 1;
  plan.gradients = 2;
  plan.optimizer = 3;
  plan.activations = 4;
  plan.communication = 5;
  plan.snapshot = 6;
  plan.program = 7;
  EXPECT_EQ(MemoryPlan::of(plan.parts()), plan);
  EXPECT_EQ(plan.total(), 28);
  EXPECT_EQ(plan.to_come(7), 21);
}

}  // namespace
}  // namespace trireme
