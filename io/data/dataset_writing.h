// Writing a dataset by several ranks, restartably: rank r makes the shards r, r + n, ...; a
// finished shard leaves a sealed note, so that a second run keeps it; the manifest comes last and
// makes the folder a dataset. The result does not depend on the number of ranks nor on restarts.
//
//   DIR/.pack/lock             held by rank 0           DIR/shards/00000.h5(.tmp, .tokens.tmp)
//   DIR/.pack/00000.json       fingerprints of the inputs, counts, the shard's entry (null: none)
//   DIR/manifest.json          written when all notes are there; then .pack goes
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/data/shard_writer.h"
#include "io/data/text_packing.h"

namespace trireme {

// What must cross ranks. The defaults are a group of one.
struct RankGroup {
  int rank = 0;
  int size = 1;
  // Rank 0's text, on every rank.
  std::function<std::string(const std::string&)> broadcast = [](const std::string& s) { return s; };
  // Every rank's text, in order, on every rank.
  std::function<std::vector<std::string>(const std::string&)> gather = [](const std::string& s) {
    return std::vector<std::string>{s};
  };
};

struct ShardJob {
  std::string fingerprint;  // of all that decides the shard's content
  // Of the very files it is made from: a shard of an earlier run is kept only if they are
  // untouched. Stays out of the dataset, which a copy of the files may make as well.
  std::string restart_fingerprint;
  std::int64_t input_bytes = 0;
  // Appends the tokens; reports input bytes done with.
  std::function<PackCounts(ShardWriter&, const std::function<void(std::int64_t)>&)> fill;
};

// Bytes of input done with by this rank, of all that it has to do.
using PackProgress = std::function<void(std::int64_t done, std::int64_t total)>;

struct DatasetJob {
  std::filesystem::path folder;
  ShardFormat format;
  std::vector<ShardJob> shards;
  std::string empty_because = "the inputs contain no text";  // for the error when nothing is packed
  PackProgress progress;                                     // may be empty
};

struct PackReport {
  std::filesystem::path folder;
  bool was_complete = false;  // by an earlier run from the same inputs
  std::int64_t shards = 0;
  std::int64_t kept_shards = 0;  // of an earlier run that did not finish
  std::int64_t n_tokens = 0;
  std::int64_t n_docs = 0;
  std::int64_t bytes = 0;
  std::string digest;
  PackCounts counts;
  std::int64_t skipped_inputs = 0;  // symbolic links and special files, filled in by pack, convert
};

// All ranks call it; the report is the same on all. PolicyError when the folder holds something
// else or another run is at work; DataError when the inputs hold no token.
PackReport write_dataset(const DatasetJob& job, const RankGroup& ranks);

}  // namespace trireme
