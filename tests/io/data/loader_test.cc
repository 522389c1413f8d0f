#include "io/data/loader.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

constexpr std::int64_t kSequence = 64;

// What one micro-batch held, as values.
struct Seen {
  std::int64_t first_sample;
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> targets;
  friend bool operator==(const Seen&, const Seen&) = default;
};

std::vector<std::int32_t> values_of(const ConstView& view) {
  const auto* data = as<std::int32_t>(view);
  return {data, data + view.count};
}

Seen take(Loader& loader) {
  const LoadedMicroBatch& batch = loader.next();
  return {batch.first_sample, values_of(batch.ids), values_of(batch.targets)};
}

class LoaderTest : public DataTest {
 protected:
  void SetUp() override {
    DataTest::SetUp();
    for (int i = 0; i < 3; ++i) {
      write_random_text(fmt::format("in/{}.txt", i), 40'000, static_cast<std::uint64_t>(i));
    }
    PackOptions o = options("in", "data");
    o.shard_bytes = 1 << 17;
    pack(o, {});
    dataset_.emplace(Dataset::open(o.out));
    samples_ = dataset_->samples(kSequence);
  }
  Sampler sampler(Shuffle shuffle = Shuffle::block) const { return {samples_, 32, shuffle, 5}; }

  std::optional<Dataset> dataset_;
  std::int64_t samples_ = 0;
};

LoaderPlan plan_of(std::int64_t global, std::int64_t micro) {
  LoaderPlan plan{
      .sequence = kSequence, .global_batch = global, .micro_batch = micro, .micros = {}};
  plan.micros.resize(static_cast<std::size_t>(global / micro));
  std::iota(plan.micros.begin(), plan.micros.end(), 0);
  return plan;
}

TEST_F(LoaderTest, GivesTheSamplesOfTheSampler) {
  const SampleIndex index(dataset_->manifest(), kSequence);
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::block, Shuffle::global}) {
    for (const int threads : {1, 3}) {
      LoaderPlan plan = plan_of(6, 3);
      plan.threads = threads;
      // Into the second epoch.
      const std::int64_t first = samples_ - 20;
      Loader loader(*dataset_, sampler(shuffle), plan, first);
      std::vector<std::byte> scratch;
      for (std::int64_t micro = 0; micro < 40; ++micro) {
        const Seen seen = take(loader);
        ASSERT_EQ(seen.first_sample, first + 3 * micro);
        for (std::int64_t row = 0; row < 3; ++row) {
          std::vector<std::int32_t> tokens(kSequence + 1);
          dataset_->read(index.locate(sampler(shuffle)(first + 3 * micro + row)), tokens, scratch);
          const auto at = static_cast<std::ptrdiff_t>(row * kSequence);
          ASSERT_TRUE(std::equal(tokens.begin(), tokens.end() - 1, seen.ids.begin() + at));
          ASSERT_TRUE(std::equal(tokens.begin() + 1, tokens.end(), seen.targets.begin() + at));
        }
      }
    }
  }
}

// Whatever the number of ranks: the micro-batches of a step are the same ones.
TEST_F(LoaderTest, RanksShareTheSameMicroBatches) {
  constexpr std::int64_t kMicros = 8;
  constexpr std::int64_t kSteps = 5;
  std::vector<Seen> one;
  Loader all(*dataset_, sampler(), plan_of(4 * kMicros, 4), 64);
  for (std::int64_t i = 0; i < kMicros * kSteps; ++i) {
    one.push_back(take(all));
  }
  for (const std::int64_t ranks : {2, 4, 8}) {
    std::vector<Seen> shared(one.size());
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      LoaderPlan plan = plan_of(4 * kMicros, 4);
      // In turns on 4 ranks, neighbours on others.
      plan.micros.clear();
      for (std::int64_t i = 0; i < kMicros / ranks; ++i) {
        plan.micros.push_back(ranks == 4 ? i * ranks + rank : rank * (kMicros / ranks) + i);
      }
      Loader loader(*dataset_, sampler(), plan, 64);
      for (std::int64_t step = 0; step < kSteps; ++step) {
        for (const std::int64_t m : plan.micros) {
          shared[static_cast<std::size_t>(step * kMicros + m)] = take(loader);
        }
      }
    }
    EXPECT_EQ(shared, one) << ranks;
  }
}

TEST_F(LoaderTest, ResumeEqualsNeverStopping) {
  Loader through(*dataset_, sampler(), plan_of(8, 4), 0);
  for (int i = 0; i < 10; ++i) {
    through.next();
  }
  Loader resumed(*dataset_, sampler(), plan_of(8, 4), 40);
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(take(resumed), take(through));
  }
}

TEST_F(LoaderTest, AMicroBatchStaysUntilTheNextCall) {
  LoaderPlan plan = plan_of(2, 2);
  plan.depth_steps = 1;
  Loader loader(*dataset_, sampler(), plan, 0);
  for (int i = 0; i < 20; ++i) {
    const LoadedMicroBatch& batch = loader.next();
    const auto before = values_of(batch.ids);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(values_of(batch.ids), before);
  }
}

TEST_F(LoaderTest, EndsAfterItsSteps) {
  LoaderPlan plan = plan_of(4, 2);
  plan.steps = 3;
  for (const int threads : {1, 4}) {
    plan.threads = threads;
    Loader loader(*dataset_, sampler(Shuffle::none), plan, 0);
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(take(loader).first_sample, 2 * i);
    }
    EXPECT_THROW(loader.next(), InternalError);
    EXPECT_GE(loader.wait_time().count(), 0);
  }
}

TEST_F(LoaderTest, CanBeLeftAtAnyTime) {
  for (int taken = 0; taken < 8; ++taken) {
    Loader loader(*dataset_, sampler(), plan_of(4, 2), 0);
    for (int i = 0; i < taken; ++i) {
      loader.next();
    }
  }
}

TEST_F(LoaderTest, WhatGoesWrongInItsThreadComesOutOfNext) {
  flip_bit(dataset_->folder() / dataset_->manifest().shards[0].path, 5000);
  const Dataset damaged = Dataset::open(dataset_->folder());
  Loader loader(damaged, sampler(Shuffle::none), plan_of(4, 2), 0);
  EXPECT_THAT(message_of<DataError>([&] { loader.next(); }),
              testing::AllOf(testing::HasSubstr("block 0"), testing::HasSubstr("expected")));
}

TEST_F(LoaderTest, PlansThatDoNotAddUpAreRefused) {
  EXPECT_THROW(Loader(*dataset_, sampler(), plan_of(5, 2), 0), ConfigError);
  LoaderPlan plan = plan_of(4, 2);
  plan.micros.push_back(2);
  EXPECT_THROW(Loader(*dataset_, sampler(), plan, 0), InternalError);
  plan = plan_of(4, 2);
  plan.sequence = 1'000'000;
  EXPECT_THROW(Loader(*dataset_, sampler(), plan, 0), DataError);
}

TEST_F(LoaderTest, NeighboursAreReadAtOnce) {
  const SampleIndex index(dataset_->manifest(), kSequence);
  BatchReads batch;
  batch.samples = {7, 3, 5, 4, 7, 90};
  batch.plan(index);
  ASSERT_EQ(batch.reads.size(), 3);
  EXPECT_EQ(batch.reads[0].run, (TokenRun{0, 3 * kSequence, 3 * kSequence + 1}));
  EXPECT_EQ(batch.reads[1].run, (TokenRun{0, 7 * kSequence, kSequence + 1}));
  EXPECT_EQ(batch.reads[1].end_row - batch.reads[1].first_row, 2);
  EXPECT_EQ(batch.rows[0].row, 1);
  EXPECT_EQ(batch.rows[1].tokens_before, kSequence);
}

}  // namespace
}  // namespace trireme
