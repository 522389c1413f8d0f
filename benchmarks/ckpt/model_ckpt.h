// `trireme bench ckpt --size MODEL` saves and loads the checkpoints that MLPerf Storage asks for,
// scaled down to a given size, with all ranks of the job and the code of training: digests, sync
// and the rename of the finished checkpoint included. Loading uses O_DIRECT where it can, so caches
// do not help. What was loaded is compared with what was saved.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "mpi/session/mpi_session.h"

namespace trireme {

struct ModelCkptOptions {
  std::string model;                           // such as "llama3-8b"
  std::filesystem::path folder = ".";          // on the disk to measure, which all nodes share
  std::int64_t bytes = std::int64_t{2} << 30;  // of the whole state, over all ranks
  int rounds = 5;
  double duration = 0;  // seconds of rounds, instead of `rounds` of them
  int threads = 0;      // that copy, per rank; 0 for its share of the cores
};

// Returns entries {name: ckpt_model_write or ckpt_model_read, ...}. Collective.
nlohmann::ordered_json bench_model_ckpt(const ModelCkptOptions& options, MpiSession& session);

}  // namespace trireme
