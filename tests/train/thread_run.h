// ThreadRun is a training run in a temporary folder, whose ranks are threads. It can be started
// several times, with changed keys.
#pragma once

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/load/logical_digest.h"
#include "io/checkpoint/store.h"
#include "mpi/thread/thread_world.h"
#include "src/base/json_fields.h"
#include "src/train/training.h"
#include "tests/support/temp_folder.h"
#include "tests/train/small_data.h"

namespace trireme {

class ThreadRun {
 public:
  // The run has six steps of four sequences of 8 tokens.
  ThreadRun() {
    data_ = pack_documents(folder_.path(), "data", {lesson(3000)});
    write_file_durably(folder_.path() / "run.yaml",
                       "model: {layers: 1, hidden: 16, heads: 2, vocab: 257, context: 8}\n"
                       "train: {steps: 6, global_batch: 4, threads: 1, log_every: 2,\n"
                       "        precision: fp32}\n"
                       "numerics: {self_check: false}\n"
                       "run: {memory_check: \"off\"}\n");
  }

  RunConfig config(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"data.train=" + data_.string(),
                                          "run.dir=" + dir().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return load_run_config(
               {.file = folder_.path() / "run.yaml", .arguments = arguments, .site = {}})
        .config;
  }
  const std::filesystem::path& data() const { return data_; }
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path dir() const { return folder_.path() / "run"; }
  std::filesystem::path checkpoints() const { return dir() / "checkpoints"; }

  // Calls work(config, host) on every rank.
  template <class Work>
  void on_ranks(const RunConfig& config, int ranks, const Work& work) {
    const auto lock = RunDirectory(config.run_dir).take();
    const StopFlag stop;
    if (signal != 0) {
      ::kill(::getpid(), signal);
      while (stop.signal() == 0) {
        std::this_thread::yield();
      }
    }
    ThreadWorld world(ranks);
    world.run([&](Communicator& comm) {
      std::vector<RankPlace> places;
      for (int rank = 0; rank < ranks; ++rank) {
        RankPlace place;
        place.rank = rank;
        place.host = comm.host(rank);
        places.push_back(std::move(place));
      }
      Log log({.rank = comm.rank(),
               .ranks = ranks,
               .terminal_level = LogLevel::error,
               .folder = config.run_dir / "logs"});
      RunStatus status;
      const TrainingHost host{.world = comm,
                              .data = comm,
                              .device = Device::cpu(),
                              .places = places,
                              .recorder = world.recorder(comm.rank()),
                              .log = log,
                              .stop = stop,
                              .status = status,
                              .limit = limit};
      work(config, host);
    });
  }
  // Trains and returns the outcome, which is the same on all ranks.
  TrainingOutcome train(const std::vector<std::string>& more = {}, int ranks = 1) {
    TrainingOutcome outcome;
    on_ranks(config(more), ranks, [&](const RunConfig& the_config, const TrainingHost& host) {
      const TrainingOutcome own = Training(the_config, host).run();
      if (host.world.rank() == 0) {
        outcome = own;
      }
    });
    return outcome;
  }

  std::vector<nlohmann::json> metrics() const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(RunDirectory(dir()).metrics());
    for (std::string line; std::getline(file, line);) {
      lines.push_back(nlohmann::json::parse(line));
    }
    return lines;
  }
  // Returns the steps of metrics.jsonl.
  std::vector<std::int64_t> logged() const {
    std::vector<std::int64_t> steps;
    for (const nlohmann::json& line : metrics()) {
      steps.push_back(line.at("step").get<std::int64_t>());
    }
    return steps;
  }
  std::string log() const { return log_text(dir() / "logs"); }
  // Returns the steps on disk, in ascending order.
  std::vector<std::int64_t> saved() const {
    std::vector<std::int64_t> steps;
    for (const StepFolder& step : list_steps(checkpoints())) {
      steps.push_back(step.step);
    }
    std::sort(steps.begin(), steps.end());
    return steps;
  }
  // Returns the digest of the newest step.
  std::string digest() const {
    std::vector<std::string> skipped;
    const StepFolder step = find_step(checkpoints(), skipped);
    return logical_digest(step.path, *step.manifest, DigestScope::all);
  }

  int signal = 0;        // raised before training, if not 0
  TimeLimit limit = {};  // of the job

 private:
  TempFolder folder_;
  std::filesystem::path data_;
};

}  // namespace trireme
