// A checkpoint that any layout saved is loaded by any other, as it was: the digest is the same when
// that one saves again, and, where the tensor-parallel degree is the same, so are the losses of all
// steps that follow. Ranks are threads.
#include "io/checkpoint/memory/resume.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/logical_digest.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/writer.h"
#include "tests/support/temp_folder.h"
#include "tests/train/layouts/tiny_runs.h"

namespace trireme {
namespace {

constexpr std::int64_t kBefore = 3;  // steps

const std::vector<Choice>& choices() {
  static const std::vector<Choice> all = {
      {{1, 1, 1}, 0},
      {{4, 1, 1}, 0},
      {{2, 1, 1}, 1},
      {{4, 1, 1}, 3},
      {{1, 1, 2}, 0, "gpipe", "full"},
      {{2, 1, 2}, 2, "zero_bubble"},
      {{1, 1, 4}, 0, "interleaved"},
      {{1, 2, 1}, 0},
      {{2, 2, 1}, 2, "1f1b", "selective"},
      {{2, 2, 2}, 3},
  };
  return all;
}

// One rank of a run.
struct Rank {
  Communicator& world;
  const RunConfig& config;
  Stream stream{{}, 1};
  Pool pool{Device{}};
  Pool shared_pool;
  Engine engine;

  Rank(Communicator& comm, FlightRecorder& recorder, const RunConfig& run_config)
      : world(comm),
        config(run_config),
        shared_pool({}, comm.memory()),
        engine(config, make_layout(config, comm.size(), comm.size()),
               {comm, recorder, kernels_for({}), stream, pool, shared_pool}) {
    engine.set_deadline(std::chrono::seconds(120));
  }

  std::vector<double> train(TrainingCounters& counters, std::int64_t steps) {
    HashedTokens tokens(config, engine.micro_batches(), counters.step);
    TrainStep step(engine, [&] { return tokens.next(); });
    std::vector<double> losses;
    for (std::int64_t i = 0; i < steps; ++i) {
      losses.push_back(step.run(counters, 0).loss);
    }
    return losses;
  }

  void save(const std::filesystem::path& folder, const TrainingCounters& counters) {
    std::vector<TensorBlock> blocks;
    for (const auto& chunk : engine.chunks()) {
      const auto more = blocks_to_save(chunk->parameters, chunk->state.pieces_to_save());
      blocks.insert(blocks.end(), more.begin(), more.end());
    }
    CheckpointMeta meta;
    meta.step = counters.step;
    (*meta.extra)["counters"] = to_json(counters);
    CheckpointWriter writer(world, {.folder = folder, .copy_threads = 1});
    writer.save(meta, blocks);
    EXPECT_TRUE(writer.finish()->durable);
  }

  TrainingCounters load(const std::filesystem::path& folder) {
    std::vector<BlockRequest> requests;
    for (const auto& chunk : engine.chunks()) {
      const auto more = blocks_to_load(chunk->parameters, chunk->state.pieces_to_load());
      requests.insert(requests.end(), more.begin(), more.end());
    }
    const auto resumed = resume(world, folder, requests, {});
    engine.masters_changed();
    // No block twice, for all ranks are on one host.
    EXPECT_LE(all_reduce_value(world, resumed->load.read_bytes, ReduceOp::sum),
              resumed->manifest.bytes());
    return counters_from_json(resumed.value().manifest.meta.extra->at("counters"));
  }
};

std::string digest_in(const std::filesystem::path& folder) {
  std::vector<std::string> skipped;
  const StepFolder step = find_step(folder, skipped);
  return logical_digest(CheckpointReader(step.path, *step.manifest), DigestScope::all);
}

using RankWork = std::function<std::vector<double>(Rank&)>;

// What the ranks' work returned, the same on all.
std::vector<double> run_world(const ModelConfig& model, const Choice& choice,
                              const RankWork& work) {
  const RunConfig config = config_of(model, choice);
  ThreadWorld world(choice.ranks(),
                    std::vector<std::string>(static_cast<std::size_t>(choice.ranks()), "host"));
  std::vector<std::vector<double>> results(static_cast<std::size_t>(choice.ranks()));
  world.run([&](Communicator& comm) {
    Rank rank(comm, world.recorder(comm.rank()), config);
    results[static_cast<std::size_t>(comm.rank())] = work(rank);
  });
  for (const auto& result : results) {
    EXPECT_EQ(result, results.front()) << choice.text();
  }
  return results.front();
}

struct Case {
  Family family;
  std::int64_t steps_after;
};

class ResumeTest : public testing::TestWithParam<Case> {
 protected:
  // Some steps from the start, then a checkpoint, then the steps that are to be repeated.
  std::vector<double> start(const Choice& choice, const std::filesystem::path& folder) {
    return run_world(model_, choice, [&](Rank& rank) {
      rank.engine.initialize(rank.config.train.seed);
      TrainingCounters counters;
      rank.train(counters, kBefore);
      rank.save(folder, counters);
      return rank.train(counters, GetParam().steps_after);
    });
  }

  // Loads, saves again elsewhere, goes on.
  std::vector<double> go_on(const Choice& choice, const std::filesystem::path& from,
                            const std::filesystem::path& to, bool train) {
    return run_world(model_, choice, [&](Rank& rank) {
      TrainingCounters counters = rank.load(from);
      EXPECT_EQ(counters.step, kBefore);
      rank.save(to, counters);
      return train ? rank.train(counters, GetParam().steps_after) : std::vector<double>{};
    });
  }

  ModelConfig model_ = model_of(GetParam().family, 4);
  TempFolder folder_;
};

TEST_P(ResumeTest, AnyLayoutGoesOnFromAnyOther) {
  for (std::size_t saver = 0; saver < choices().size(); ++saver) {
    const Choice& saved = choices()[saver];
    const std::filesystem::path from = folder_.path() / std::to_string(saver);
    const std::vector<double> uninterrupted = start(saved, from);
    const std::string digest = digest_in(from);
    for (std::size_t loader = 0; loader < choices().size(); ++loader) {
      const Choice& loaded = choices()[loader];
      SCOPED_TRACE(saved.text() + " -> " + loaded.text());
      const std::filesystem::path to = from / "again" / std::to_string(loader);
      const bool train = saved.degrees.tp == loaded.degrees.tp;
      const std::vector<double> losses = go_on(loaded, from, to, train);
      EXPECT_EQ(digest_in(to), digest);
      if (train) {
        EXPECT_EQ(losses, uninterrupted);
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<Case>& named) {
  return std::string(family_name(named.param.family));
}

INSTANTIATE_TEST_SUITE_P(Some, ResumeTest,
                         testing::Values(Case{Family::gpt2, 4}, Case{Family::llama, 4}), name_of);
// Too many steps for every day.
INSTANTIATE_TEST_SUITE_P(Whole, ResumeTest,
                         testing::Values(Case{Family::gpt2, 20}, Case{Family::llama, 20}), name_of);

}  // namespace
}  // namespace trireme
