// SampleIndex says where the samples of a given length lie. Sample i of a shard is its tokens [i *
// sequence, i * sequence + sequence + 1): consecutive samples share a token, and none spans two
// shards. Samples are numbered through all shards in the manifest's order. A pure value.
#pragma once

#include <cstdint>
#include <vector>

#include "io/data/dataset_manifest.h"

namespace trireme {

// TokenRun is a run of tokens in one shard.
struct TokenRun {
  std::size_t shard = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const TokenRun&, const TokenRun&) = default;
};

class SampleIndex {
 public:
  // Throws DataError that names the largest possible length if no shard holds sequence + 1 tokens.
  SampleIndex(const DatasetManifest& manifest, std::int64_t sequence);

  std::int64_t sequence() const { return sequence_; }
  std::int64_t samples() const { return first_sample_.back(); }
  // Returns the tokens of one sample.
  TokenRun locate(std::int64_t sample) const;

 private:
  std::int64_t sequence_;
  // Number of the first sample of each shard, then the total.
  std::vector<std::int64_t> first_sample_;
};

// BatchReads lists the reads for those samples of a batch that come from one dataset, in the order
// of the dataset. Samples that are neighbours in the dataset share one read. Reuses its memory from
// batch to batch.
struct BatchReads {
  struct Row {
    std::int64_t row;                // index in the batch
    std::int64_t sample;             // of the dataset
    std::int64_t tokens_before = 0;  // tokens of its read that precede the row's tokens
  };
  struct Read {
    TokenRun run;
    std::size_t first_row;  // its rows are rows[first_row, end_row)
    std::size_t end_row;
  };
  std::vector<Row> rows;  // input: the row and the sample of each
  std::vector<Read> reads;

  // Sorts the rows and sets everything else.
  void plan(const SampleIndex& index);
};

}  // namespace trireme
