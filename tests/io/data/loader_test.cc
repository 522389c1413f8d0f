#include "io/data/loader.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

constexpr std::int64_t kSequence = 64;

// Seen is a copy of one micro-batch.
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
  const LoadedMicroBatch batch = loader.next();
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

// Returns all micro-batches of a step, which a single rank computes.
std::vector<std::int64_t> all_micros(std::int64_t count) {
  std::vector<std::int64_t> micros(static_cast<std::size_t>(count));
  std::iota(micros.begin(), micros.end(), 0);
  return micros;
}

LoaderPlan plan_of(const BatchSchedule& batches, std::int64_t micro) {
  return {.sequence = kSequence, .batches = batches, .micro_batch = micro, .micros = all_micros};
}

TEST_F(LoaderTest, GivesTheSamplesOfTheSampler) {
  const SampleIndex index(dataset_->manifest(), kSequence);
  for (const Shuffle shuffle : {Shuffle::none, Shuffle::block, Shuffle::global}) {
    for (const int threads : {1, 3}) {
      LoaderPlan plan = plan_of(6, 3);
      plan.threads = threads;
      // The range reaches into the second epoch.
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

// The micro-batches of a step do not depend on the number of ranks.
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
      // With 4 ranks, micro-batches are dealt out in turns, and otherwise in consecutive shares.
      std::vector<std::int64_t> micros;
      for (std::int64_t i = 0; i < kMicros / ranks; ++i) {
        micros.push_back(ranks == 4 ? i * ranks + rank : rank * (kMicros / ranks) + i);
      }
      plan.micros = [&](std::int64_t) { return micros; };
      Loader loader(*dataset_, sampler(), plan, 64);
      for (std::int64_t step = 0; step < kSteps; ++step) {
        for (const std::int64_t m : micros) {
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

// The batch grows from 4 to 14 samples, by 4 every 3 batches.
const BatchSchedule kRamp(14, {4, 4, 3});

// When the batch size changes, no sample is skipped or read twice, whichever rank reads it.
TEST_F(LoaderTest, ARampReadsEverySampleOnce) {
  LoaderPlan plan = plan_of(kRamp, 2);
  plan.steps = 12;
  for (const int threads : {1, 3}) {
    plan.threads = threads;
    Loader loader(*dataset_, sampler(), plan, 100);
    const std::int64_t micros = kRamp.before(12) / 2;
    for (std::int64_t micro = 0; micro < micros; ++micro) {
      ASSERT_EQ(take(loader).first_sample, 100 + 2 * micro);
    }
    EXPECT_THROW(loader.next(), InternalError);
  }
  // Two ranks take the micro-batches in turns or in halves; 14 samples are 14 micro-batches of 1.
  for (const bool in_turns : {true, false}) {
    std::vector<int> seen(static_cast<std::size_t>(kRamp.before(12)), 0);
    for (const std::int64_t rank : {0, 1}) {
      plan.micro_batch = 1;
      plan.micros = [=](std::int64_t count) {
        std::vector<std::int64_t> micros;
        for (std::int64_t i = 0; i < count / 2; ++i) {
          micros.push_back(in_turns ? 2 * i + rank : rank * (count / 2) + i);
        }
        return micros;
      };
      Loader loader(*dataset_, sampler(), plan, 0);
      for (std::int64_t i = 0; i < kRamp.before(12) / 2; ++i) {
        ++seen[static_cast<std::size_t>(take(loader).first_sample)];
      }
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  }
}

TEST_F(LoaderTest, ARampGoesOnWhereItStopped) {
  for (const std::int64_t batch : {1, 3, 5, 9, 11}) {
    Loader through(*dataset_, sampler(), plan_of(kRamp, 2), 0);
    for (std::int64_t i = 0; i < kRamp.before(batch) / 2; ++i) {
      through.next();
    }
    LoaderPlan plan = plan_of(kRamp, 2);
    plan.first_batch = batch;
    Loader resumed(*dataset_, sampler(), plan, kRamp.before(batch));
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(take(resumed), take(through)) << batch;
    }
  }
}

// A pipeline holds all micro-batches of a step until the step's end.
TEST_F(LoaderTest, ALeasedMicroBatchStaysAsItIs) {
  LoaderPlan plan = plan_of(4, 2);
  plan.depth_steps = 1;
  Loader loader(*dataset_, sampler(), plan, 0);
  for (int step = 0; step < 10; ++step) {
    const std::vector<LoadedMicroBatch> held = {loader.next(), loader.next()};
    const auto first = values_of(held[0].ids);
    const auto second = values_of(held[1].targets);
    for (int i = 0; i < 2; ++i) {
      loader.next();
    }
    EXPECT_EQ(values_of(held[0].ids), first);
    EXPECT_EQ(values_of(held[1].targets), second);
  }
}

TEST_F(LoaderTest, MoreLeasesThanItHasMemoryForAreRefused) {
  LoaderPlan plan = plan_of(4, 2);
  plan.depth_steps = 1;
  Loader loader(*dataset_, sampler(), plan, 0);
  std::vector<LoadedMicroBatch> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(loader.next());
  }
  EXPECT_THROW(loader.next(), InternalError);
  const auto oldest = values_of(held.front().ids);
  held.front() = {};
  EXPECT_NE(values_of(loader.next().ids), oldest);
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

// Evaluations make one loader after another, and pinned memory is slow to get.
TEST_F(LoaderTest, TakesItsSlotsFromThePoolThatThePlanNames) {
  Pool pool(Device::cpu());
  LoaderPlan plan = plan_of(4, 2);
  plan.memory = &pool;
  const std::int64_t slot = 2 * 2 * kSequence * 4;
  std::vector<Seen> seen;
  for (int i = 0; i < 2; ++i) {
    Loader loader(*dataset_, sampler(), plan, 0);
    seen.push_back(take(loader));
    EXPECT_EQ(pool.peak_bytes(), 6 * slot) << "of three steps";
    EXPECT_EQ(pool.reserved_bytes(), 6 * slot) << "the second loader takes the memory of the first";
  }
  Loader ordinary(*dataset_, sampler(), plan_of(4, 2), 0);
  EXPECT_EQ(take(ordinary), seen[0]);
  EXPECT_EQ(seen[1], seen[0]);
}

TEST_F(LoaderTest, ErrorsTakeNoMemoryOfTheLoader) {
  flip_bit(dataset_->folder() / dataset_->manifest().shards[0].path, 5000);
  const Dataset damaged = Dataset::open(dataset_->folder());
  Loader loader(damaged, sampler(Shuffle::none), plan_of(4, 2), 0);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THROW(loader.next(), DataError);
  }
}

TEST_F(LoaderTest, PlansThatDoNotAddUpAreRefused) {
  EXPECT_THROW(Loader(*dataset_, sampler(), plan_of(5, 2), 0), ConfigError);
  const BatchSchedule odd(8, {2, 3, 1});
  EXPECT_THAT(message_of<ConfigError>([&] { Loader(*dataset_, sampler(), plan_of(odd, 2), 0); }),
              testing::HasSubstr("a batch of 5 samples is not a multiple of micro_batch 2"));
  LoaderPlan plan = plan_of(4, 2);
  plan.micros = [](std::int64_t) { return std::vector<std::int64_t>{0, 1, 2}; };
  EXPECT_THROW(Loader(*dataset_, sampler(), plan, 0), InternalError);
  plan = plan_of(4, 2);
  plan.sequence = 1'000'000;
  EXPECT_THROW(Loader(*dataset_, sampler(), plan, 0), DataError);
}

// Each row comes from the dataset that the mixture names, whatever the other rows are, and the rows
// do not depend on the ranks or on where the run began.
TEST_F(LoaderTest, MixesDatasets) {
  write_random_text("other/a.txt", 30'000, 9);
  PackOptions o = options("other", "more");
  pack(o, {});
  const Dataset other = Dataset::open(o.out);
  const Sampler of_other(other.samples(kSequence), 32, Shuffle::global, 3);
  const std::vector<LoaderSource> sources = {{*dataset_, sampler()}, {other, of_other}};
  const Mixture mixture(
      std::vector<MixtureWeights>{{0, {2, 1}}, {2 * other.samples(kSequence), {1, 3}}});
  const auto expected = [&](std::int64_t n) {
    const MixturePlace place = mixture(n);
    const LoaderSource& source = sources[place.source];
    const SampleIndex index(source.dataset.manifest(), kSequence);
    std::vector<std::int32_t> tokens(kSequence + 1);
    std::vector<std::byte> scratch;
    source.dataset.read(index.locate(source.sampler(place.number)), tokens, scratch);
    return tokens;
  };
  LoaderPlan plan = plan_of(6, 3);
  plan.threads = 2;
  Loader all(sources, mixture, plan, 0);
  std::vector<Seen> seen;
  for (std::int64_t micro = 0; micro < 400; ++micro) {
    seen.push_back(take(all));
    for (std::int64_t row = 0; row < 3; ++row) {
      const std::vector<std::int32_t> tokens = expected(3 * micro + row);
      const auto at = static_cast<std::ptrdiff_t>(row * kSequence);
      ASSERT_TRUE(std::equal(tokens.begin(), tokens.end() - 1, seen.back().ids.begin() + at));
      ASSERT_TRUE(std::equal(tokens.begin() + 1, tokens.end(), seen.back().targets.begin() + at));
    }
  }
  plan.micros = [](std::int64_t) { return std::vector<std::int64_t>{1}; };
  plan.first_batch = 20;
  Loader half(sources, mixture, plan, 120);
  for (std::size_t step = 20; step < 200; ++step) {
    ASSERT_EQ(take(half), seen[2 * step + 1]) << step;
  }
}

TEST_F(LoaderTest, NeighboursAreReadAtOnce) {
  const SampleIndex index(dataset_->manifest(), kSequence);
  BatchReads batch;
  batch.rows = {{0, 7}, {1, 3}, {2, 5}, {3, 4}, {4, 7}, {5, 90}};
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
