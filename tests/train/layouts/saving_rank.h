// Makes ranks that train, save and resume, and worlds of them. Ranks are threads.
#pragma once

#include <functional>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/disk_target.h"
#include "io/checkpoint/load/logical_digest.h"
#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/store.h"
#include "io/checkpoint/writer.h"
#include "tests/train/layouts/tiny_runs.h"

namespace trireme {

// Rank is one rank of a run.
struct Rank {
  Communicator& world;
  const RunConfig& config;
  DeviceContext context;
  Engine engine;

  Rank(Communicator& comm, FlightRecorder& recorder, const RunConfig& run_config)
      : world(comm),
        config(run_config),
        context(Device::cpu(), 1, comm.memory()),
        engine(config, make_layout(config, comm.size(), comm.size()),
               {comm, comm, recorder, context}) {
    engine.set_deadline(std::chrono::seconds(120));
  }

  std::vector<double> train(TrainingCounters& counters, std::int64_t steps) {
    HashedTokens tokens(engine, counters.step);
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
      add_blocks(chunk->parameters, chunk->state.pieces_to_save(), blocks);
    }
    CheckpointMeta meta;
    meta.step = counters.step;
    (*meta.extra)["counters"] = to_json(counters);
    DiskTarget target(world, {.folder = folder, .copy_threads = 1});
    CheckpointWriter writer(world, target);
    writer.save(meta, blocks);
    EXPECT_TRUE(writer.finish()->durable);
  }

  TrainingCounters load(const std::filesystem::path& folder) {
    std::vector<TensorBlock> blocks;
    for (const auto& chunk : engine.chunks()) {
      add_blocks(chunk->parameters, chunk->state.pieces_to_load(), blocks);
    }
    const auto resumed = resume(world, folder, blocks, {});
    engine.masters_changed();
    // No block is read twice, because all ranks are on one host.
    EXPECT_LE(all_reduce_value(world, resumed->load.read_bytes, ReduceOp::sum),
              resumed->manifest.bytes());
    return counters_from_json(resumed.value().manifest.meta.extra->at("counters"));
  }
};

inline std::string digest_in(const std::filesystem::path& folder) {
  std::vector<std::string> skipped;
  const StepFolder step = find_step(folder, skipped);
  return logical_digest(step.path, *step.manifest, DigestScope::all);
}

using RankWork = std::function<std::vector<double>(Rank&)>;

// Runs `work` on all ranks and returns its result, which must be the same on all.
inline std::vector<double> run_world(const RunConfig& config, int ranks, const std::string& what,
                                     const RankWork& work) {
  ThreadWorld world(ranks, std::vector<std::string>(static_cast<std::size_t>(ranks), "host"));
  std::vector<std::vector<double>> results(static_cast<std::size_t>(ranks));
  world.run([&](Communicator& comm) {
    Rank rank(comm, world.recorder(comm.rank()), config);
    results[static_cast<std::size_t>(comm.rank())] = work(rank);
  });
  for (const auto& result : results) {
    EXPECT_EQ(result, results.front()) << what;
  }
  return results.front();
}

}  // namespace trireme
