// SampleIndex: where samples of one length lie. Sample i of a shard is its tokens
// [i * sequence, i * sequence + sequence + 1): consecutive samples share a token, and none
// straddles two shards. Samples are numbered through all shards, in the manifest's order. A value;
// pure.
#pragma once

#include <cstdint>
#include <vector>

#include "io/data/dataset_manifest.h"

namespace trireme {

// A run of tokens of one shard.
struct TokenRun {
  std::size_t shard = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const TokenRun&, const TokenRun&) = default;
};

class SampleIndex {
 public:
  // DataError when no shard holds sequence + 1 tokens: the message says how long one may be.
  SampleIndex(const DatasetManifest& manifest, std::int64_t sequence);

  std::int64_t sequence() const { return sequence_; }
  std::int64_t samples() const { return first_sample_.back(); }
  // The tokens of one sample.
  TokenRun locate(std::int64_t sample) const;

 private:
  std::int64_t sequence_;
  std::vector<std::int64_t> first_sample_;  // of each shard, and the end
};

// The reads for a batch of samples, in the order of the file; samples that are neighbours in the
// dataset come by one read. Keeps its memory from batch to batch.
struct BatchReads {
  struct Row {
    std::int64_t row;            // in the batch
    std::int64_t tokens_before;  // of its run, before its own
  };
  struct Read {
    TokenRun run;
    std::size_t first_row;  // its rows are rows[first_row, end_row)
    std::size_t end_row;
  };
  std::vector<Row> rows;
  std::vector<Read> reads;
  std::vector<std::int64_t> samples;  // in: the sample of each row

  void plan(const SampleIndex& index);
};

}  // namespace trireme
