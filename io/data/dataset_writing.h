// Several ranks write a dataset; an interrupted run can be continued. Rank r of n makes the shards
// r, r + n, ... A finished shard leaves a sealed note, so that the next run keeps it. The manifest
// is written last and makes the folder a dataset. The result depends neither on the number of ranks
// nor on restarts.
//
//   DIR/.pack/lock             held by rank 0           DIR/shards/00000.h5(.tmp, .tokens.tmp)
//   DIR/.pack/00000.json       fingerprints of the inputs, counts, the shard's entry (null: none)
//   DIR/.pack/keys.json        the wrapped key of the shards, if they are encrypted
//   DIR/manifest.json          written when all notes exist; then .pack is removed
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/data/dataset_keys.h"
#include "io/data/input_files.h"
#include "io/data/shard_writer.h"
#include "io/data/text_packing.h"

namespace trireme {

// RankGroup holds the operations of a group of ranks that a pack needs. The defaults are those of a
// group of one rank.
struct RankGroup {
  int rank = 0;
  int size = 1;
  // Returns rank 0's text on every rank.
  std::function<std::string(const std::string&)> broadcast = [](const std::string& s) { return s; };
  // Returns the texts of all ranks, in rank order, on every rank.
  std::function<std::vector<std::string>(const std::string&)> gather = [](const std::string& s) {
    return std::vector<std::string>{s};
  };
};

struct ShardJob {
  std::string fingerprint;  // covers everything that determines the shard's content
  // Identifies the exact input files: a shard of an earlier run is kept only if they have not been
  // touched. It is not stored in the dataset, because copies of the files must give the same
  // dataset.
  std::string restart_fingerprint;
  std::int64_t input_bytes = 0;
  // Appends the tokens and calls the given function with the number of input bytes just processed.
  std::function<PackCounts(ShardWriter&, const std::function<void(std::int64_t)>&)> fill;
};

// Called with the input bytes that this rank has processed and the total that it has to process.
using PackProgress = std::function<void(std::int64_t done, std::int64_t total)>;

struct DatasetJob {
  std::filesystem::path folder;
  ShardFormat format;
  std::optional<Label> label = {};
  std::vector<ShardJob> shards;
  std::string empty_because = "the inputs contain no text";  // the error if nothing is packed
  PackProgress progress;                                     // may be empty
  DatasetKeyMaker make_key = {};                             // empty: the shards are not encrypted

  bool encrypts() const { return make_key != nullptr; }
};

struct PackReport {
  std::filesystem::path folder;
  bool was_complete = false;  // an earlier run from the same inputs had finished the dataset
  std::int64_t shards = 0;
  std::int64_t kept_shards = 0;  // shards kept from an earlier run that did not finish
  std::int64_t n_tokens = 0;
  std::int64_t n_docs = 0;
  std::int64_t bytes = 0;
  std::string digest;
  std::string manifest_sha256;  // of the manifest's file, on rank 0
  bool is_encrypted = false;
  std::optional<Label> label = {};
  PackCounts counts;
  // Symbolic links and special files; filled in by pack() and convert().
  std::int64_t skipped_inputs = 0;
  // The files as they were listed before they were packed; filled in by pack(), in the first of its
  // reports.
  std::vector<InputFile> inputs;
};

// All ranks call it together and get the same report. Throws PolicyError if the folder holds
// something else or another run is writing to it, or if no key opens what an earlier one encrypted,
// and DataError if the inputs contain no token.
PackReport write_dataset(const DatasetJob& job, const RankGroup& ranks);

}  // namespace trireme
