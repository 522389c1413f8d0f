#include "io/checkpoint/load/resume.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/fingerprint.h"
#include "io/checkpoint/load/load_step.h"
#include "io/checkpoint/tiling.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/unprivileged.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Resume, WithoutCheckpointsThereIsNothing) {
  TempFolder folder;
  EXPECT_FALSE(load_state(folder.path(), small_state(), cut_rows, 2).resumed.has_value());
  EXPECT_FALSE(load_state(folder.path() / "none", small_state()).resumed.has_value());
}

TEST(Resume, TakesTheWantedStepOrNone) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(1), 1).durable);
  ASSERT_TRUE(save_state(folder.path(), small_state(2), 2).durable);
  ResumeOptions options;
  options.step = 1;
  EXPECT_TRUE(load_state(folder.path(), small_state(1), cut_flat, 2, options).equal);
  options.step = 3;
  EXPECT_THROW(load_state(folder.path(), small_state(1), cut_flat, 2, options), NotFound);
  std::filesystem::remove(step_path(folder.path(), 1) / "manifest.json");
  options.step = 1;
  EXPECT_THROW(load_state(folder.path(), small_state(1), cut_flat, 2, options), DataError);
}

TEST(Resume, AStepThatTheRunCannotUseIsSkippedLikeADamagedOne) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(1), 1).durable);
  ASSERT_TRUE(save_state(folder.path(), small_state(2), 2).durable);
  ResumeOptions options;
  int loads = 0;
  options.fault_of_loaded = [&] { return std::string(++loads == 1 ? "contains NaN" : ""); };
  const LoadedState loaded = load_state(folder.path(), small_state(1), cut_nothing, 1, options);
  EXPECT_TRUE(loaded.equal);
  ASSERT_TRUE(loaded.resumed);
  EXPECT_EQ(loaded.resumed->manifest.meta.step, 1);
  EXPECT_THAT(loaded.resumed->skipped,
              ElementsAre(AllOf(HasSubstr("step-00000002"), HasSubstr("contains NaN"))));
  options.fault_of_loaded = [] { return std::string("contains NaN"); };
  EXPECT_THROW(load_state(folder.path(), small_state(1), cut_nothing, 1, options), DataError);
}

// Returns how many ranks threw an E, and expects `text` in each message.
template <class E>
int ranks_that_throw(const std::function<void(Communicator&)>& work, const std::string& text) {
  std::atomic<int> thrown = 0;
  ThreadWorld(3).run([&](Communicator& comm) {
    try {
      work(comm);
    } catch (const E& e) {
      EXPECT_THAT(e.what(), HasSubstr(text));
      ++thrown;
    }
  });
  return thrown;
}

TEST(Resume, WithoutAGoodOneAllRanksLearnHowToStartAnew) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  std::filesystem::remove(step_path(folder.path(), 1) / "manifest.json");
  const auto work = [&](Communicator& comm) { resume(comm, folder.path(), {}); };
  EXPECT_EQ(
      ranks_that_throw<DataError>(
          work, fmt::format("remove {} or choose another checkpoint.dir", folder.path().string())),
      3);
}

// If the newest step can't be read, the run must not continue from an older one.
TEST(Resume, WhatMayNotBeReadIsRefusedByAllRanks) {
  for (const char* file : {"manifest.json", "shard-00000.safetensors"}) {
    TempFolder folder;
    for (const std::int64_t step : {1, 2}) {
      ASSERT_TRUE(save_state(folder.path(), small_state(), step).durable);
    }
    forbid_reading(folder.path(), step_path(folder.path(), 2) / file);
    const Unprivileged nobody;
    if (!nobody.bound()) {
      GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
    }
    const auto load = [&](ResumeOptions options) {
      return [&, options](Communicator& comm) {
        const State state = small_state();
        const Blocks blocks = cut_state(state, cut_flat, comm.rank(), 3);
        resume(comm, folder.path(), blocks.list, options);
      };
    };
    EXPECT_EQ(ranks_that_throw<PolicyError>(load({}), std::string("step-00000002/") + file), 3);
    EXPECT_EQ(ranks_that_throw<PolicyError>(load({.step = 2}), file), 3);
    EXPECT_EQ(ranks_that_throw<PolicyError>(load({.step = 1}), file), 0);
  }
}

// The shard becomes unreadable after the folder was inspected and before the load.
TEST(Resume, ALateRefusalIsNoDamageEither) {
  TempFolder folder;
  for (const std::int64_t step : {1, 2}) {
    ASSERT_TRUE(save_state(folder.path(), small_state(), step).durable);
  }
  const std::filesystem::path shard = step_path(folder.path(), 2) / "shard-00000.safetensors";
  const std::filesystem::path closed = step_path(folder.path(), 2) / "closed";
  std::filesystem::copy(shard, closed);
  forbid_reading(folder.path(), closed);
  std::filesystem::permissions(closed.parent_path(), std::filesystem::perms::all);
  const Unprivileged nobody;
  if (!nobody.bound()) {
    GTEST_SKIP() << "needs to become another user: run as root with CAP_SETUID";
  }
  const auto work = [&](Communicator& comm) {
    const State state = small_state();
    const Blocks blocks = cut_state(state, cut_flat, comm.rank(), 3);
    ResumeOptions options;
    options.accept = [&](const Manifest&) {
      if (comm.rank() == 0) {
        std::filesystem::rename(closed, shard);
      }
    };
    resume(comm, folder.path(), blocks.list, options);
  };
  EXPECT_EQ(ranks_that_throw<PolicyError>(work, "shard-00000.safetensors"), 3);
}

TEST(Resume, ACheckpointOfAnotherRunIsRefusedByAllRanks) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  ResumeOptions options;
  options.accept = [](const Manifest& manifest) {
    const auto lines = differences(*manifest.meta.config, {{"model", {{"hidden", 12}}}});
    throw ConfigError(lines.at(0));
  };
  const auto work = [&](Communicator& comm) { resume(comm, folder.path(), {}, options); };
  EXPECT_EQ(ranks_that_throw<ConfigError>(work, "model.hidden: checkpoint 10, run 12"), 3);
}

TEST(Resume, AStepWhoseManifestContradictsItselfIsSkipped) {
  TempFolder folder;
  for (const std::int64_t step : {1, 2, 3}) {
    ASSERT_TRUE(save_state(folder.path(), small_state(), step).durable);
  }
  ThreadWorld(3).run([&](Communicator& comm) {
    const State state = small_state();
    const Blocks blocks = cut_state(state, cut_flat, comm.rank(), 3);
    ResumeOptions options;
    options.accept = [](const Manifest& manifest) {
      if (manifest.meta.step > 1) {
        throw DataError("its counters are wrong");
      }
    };
    const auto resumed = resume(comm, folder.path(), blocks.list, options);
    ASSERT_TRUE(resumed);
    EXPECT_EQ(resumed->manifest.meta.step, 1);
    EXPECT_THAT(resumed->skipped.at(0), HasSubstr("manifest.json: its counters are wrong"));
    std::vector<std::int64_t> damaged;
    for (const StepIdentity& step : resumed->damaged) {
      damaged.push_back(step.step);
    }
    EXPECT_THAT(damaged, ElementsAre(3, 2));
    options.step = 3;
    EXPECT_THROW(resume(comm, folder.path(), blocks.list, options), DataError);
  });
}

TEST(Resume, AMismatchOnOneRankIsToldOnAll) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  const auto work = [&](Communicator& comm) {
    State state = small_state();
    if (comm.rank() == 1) {
      state[0].shape = {13, 11};
      state[0].bytes.resize(13 * 11 * 4);
    }
    const Blocks blocks = cut_state(state, cut_flat, comm.rank(), 3);
    resume(comm, folder.path(), blocks.list);
  };
  EXPECT_EQ(
      ranks_that_throw<ConfigError>(work, "wte.weight: checkpoint F32 [13, 10], run F32 [13, 11]"),
      3);
}

// The checkpoint's configuration describes the run's model, but its tensors are others: the step
// contradicts itself.
TEST(Resume, SkipsAStepWhoseTensorsContradictItsModel) {
  TempFolder folder;
  State other = small_state();
  other[0].name = "other.weight";
  ASSERT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  ASSERT_TRUE(save_state(folder.path(), other, 2).durable);
  bool is_same = true;
  const auto work = [&](Communicator& comm) {
    State state = small_state();
    const Blocks blocks = cut_state(state, cut_nothing, comm.rank(), 2);  // rank 0 has all blocks
    ResumeOptions options;
    options.is_same_model = [&](const Manifest&) { return is_same; };
    const std::optional<Resumed> resumed = resume(comm, folder.path(), blocks.list, options);
    ASSERT_TRUE(resumed.has_value());
    EXPECT_EQ(resumed->manifest.meta.step, 1);
    EXPECT_THAT(resumed->skipped, ElementsAre(HasSubstr("the checkpoint has no such tensor")));
  };
  ThreadWorld(2).run(work);
  is_same = false;
  EXPECT_EQ(ranks_that_throw<ConfigError>(work, "the checkpoint has no such tensor"), 3);
}

TEST(Reader, NamesEveryMismatch) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  State state = small_state();
  state[1].dtype = DType::u16;
  state.push_back(make_tensor("lm_head.weight", DType::f32, {4}, 1));
  const Blocks blocks = cut_state(state, cut_nothing, 0, 1);
  const StepFolder step = inspect_step(step_path(folder.path(), 1));
  EXPECT_THAT(mismatches(*step.manifest, blocks.list),
              ElementsAre("h.0.bias: checkpoint BF16 [33], run U16 [33]",
                          "lm_head.weight: the checkpoint has no such tensor"));
  EXPECT_THROW(load_step(step.path, *step.manifest, blocks.list), ConfigError);
}

TEST(Fingerprint, TellsDifferencesFieldByField) {
  const nlohmann::json checkpoint = {{"model", {{"hidden", 768}, {"layers", 12}, {"tied", true}}},
                                     {"seed", 1},
                                     {"betas", {0.9, 0.95}},
                                     {"same", "x"}};
  const nlohmann::json run = {{"model", {{"hidden", 1024}, {"layers", 12}, {"vocab", "bytes"}}},
                              {"seed", 1.5},
                              {"betas", {0.9, 0.99}},
                              {"same", "x"}};
  EXPECT_THAT(differences(checkpoint, run),
              ElementsAre("betas: checkpoint [0.9,0.95], run [0.9,0.99]",
                          "model.hidden: checkpoint 768, run 1024",
                          "model.tied: checkpoint true, run has none",
                          "model.vocab: checkpoint has none, run \"bytes\"",
                          "seed: checkpoint 1, run 1.5"));
  EXPECT_THAT(differences(checkpoint, run, {"model", "betas"}),
              ElementsAre("seed: checkpoint 1, run 1.5"));
  EXPECT_THAT(differences(checkpoint, run, {"model.hid"}), testing::SizeIs(5));
  EXPECT_THAT(differences(checkpoint, checkpoint), IsEmpty());
}

TEST(Tiling, FindsGapsAndOverlaps) {
  const Shape shape{4, 6};
  EXPECT_EQ(tiling_fault({Extent::whole(shape)}, shape), "");
  EXPECT_EQ(tiling_fault({Extent::flat(0, 10), Extent::flat(10, 14)}, shape), "");
  EXPECT_EQ(tiling_fault({Extent::box({0, 0}, {2, 3}), Extent::box({2, 0}, {2, 6}),
                          Extent::box({0, 3}, {2, 3}), Extent::box({1, 1}, {0, 2})},
                         shape),
            "");
  EXPECT_THAT(tiling_fault({Extent::flat(0, 10), Extent::flat(9, 14)}, shape),
              HasSubstr("overlap"));
  EXPECT_THAT(tiling_fault({Extent::flat(0, 10)}, shape), HasSubstr("10 of 24"));
  EXPECT_THAT(tiling_fault({}, shape), HasSubstr("0 of 24"));
  EXPECT_THAT(tiling_fault({Extent::whole(shape), Extent::whole(shape)}, shape),
              HasSubstr("overlap"));
  EXPECT_THAT(tiling_fault({Extent::flat(0, 12), Extent::box({2, 0}, {2, 6})}, shape),
              HasSubstr("boxes"));
  EXPECT_THAT(tiling_fault({Extent::box({0, 0}, {4, 3}), Extent::box({0, 2}, {4, 3})}, shape),
              HasSubstr("overlap"));
  EXPECT_THAT(tiling_fault({Extent::flat(20, 5)}, shape), HasSubstr("fit"));
  EXPECT_EQ(tiling_fault({}, {0, 3}), "");
  EXPECT_THAT(tiling_fault({}, {}), HasSubstr("0 of 1"));
}

}  // namespace
}  // namespace trireme
