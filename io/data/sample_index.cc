#include "io/data/sample_index.h"

#include <algorithm>
#include <utility>

#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {

SampleIndex::SampleIndex(const DatasetManifest& manifest, std::int64_t sequence)
    : sequence_(sequence) {
  if (sequence < 1) {
    throw ConfigError(fmt::format("the sequence length is {}: it must be at least 1", sequence));
  }
  std::int64_t longest = 0;
  first_sample_.push_back(0);
  for (const ShardEntry& shard : manifest.shards) {
    first_sample_.push_back(first_sample_.back() + (shard.n_tokens - 1) / sequence);
    longest = std::max(longest, shard.n_tokens - 1);
  }
  if (samples() == 0) {
    throw DataError(fmt::format(
        "the dataset has no sample of {} tokens: its longest shard allows a "
        "sequence of {}; shorten data.sequence (for `trireme eval`, --sequence) or pack "
        "more text",
        sequence, longest));
  }
}

TokenRun SampleIndex::locate(std::int64_t sample) const {
  check(sample >= 0 && sample < samples(), "a sample lies within the dataset");
  const auto after = std::upper_bound(first_sample_.begin(), first_sample_.end(), sample);
  const auto shard = static_cast<std::size_t>(after - first_sample_.begin()) - 1;
  return {shard, (sample - first_sample_[shard]) * sequence_, sequence_ + 1};
}

void BatchReads::plan(const SampleIndex& index) {
  reads.clear();
  std::ranges::sort(rows, {}, [](const Row& r) { return std::pair(r.sample, r.row); });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TokenRun sample = index.locate(rows[i].sample);
    rows[i].tokens_before = 0;
    // Consecutive samples share a token, so their reads overlap and are merged.
    if (!reads.empty() && reads.back().run.shard == sample.shard &&
        sample.first < reads.back().run.first + reads.back().run.count) {
      TokenRun& run = reads.back().run;
      run.count = sample.first + sample.count - run.first;
      rows[i].tokens_before = sample.first - run.first;
      reads.back().end_row = i + 1;
    } else {
      reads.push_back({sample, i, i + 1});
    }
  }
}

}  // namespace trireme
