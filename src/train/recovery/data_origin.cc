#include "src/train/recovery/data_origin.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

// Orders losses; NaN counts as the largest.
double rank_of(double loss) { return std::isnan(loss) ? HUGE_VAL : loss; }

std::vector<std::size_t> largest_first(const std::vector<double>& losses) {
  std::vector<std::size_t> order(losses.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return rank_of(losses[a]) > rank_of(losses[b]);
  });
  return order;
}

// Returns the document that contains a token of the shard: the last one that begins at or before
// it. The shard's table is u64 [n_docs + 1], in ascending order.
std::int64_t document_of(const File& shard, const ShardEntry& entry, std::int64_t token) {
  std::int64_t low = 0;
  std::int64_t high = entry.n_docs;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    std::uint64_t begin = 0;
    shard.read_exactly_at(entry.docs_offset + middle * static_cast<std::int64_t>(sizeof begin),
                          &begin, sizeof begin);
    (begin <= static_cast<std::uint64_t>(token) ? low : high) = middle;
  }
  return low;
}

std::string documents_of(const Dataset& dataset, const TokenRun& run) {
  const ShardEntry& entry = dataset.manifest().shards.at(run.shard);
  try {
    const File shard = File::open_to_read(dataset.folder() / entry.path);
    const std::int64_t first = document_of(shard, entry, run.first);
    const std::int64_t last = document_of(shard, entry, run.first + run.count - 1);
    return first == last ? fmt::format("document {}", first)
                         : fmt::format("documents {} to {}", first, last);
  } catch (const Error&) {
    return "documents unknown";
  }
}

// Describes where sample n of the run comes from.
std::string describe_sample(const TrainingData& data, const std::vector<LoaderSource>& sources,
                            const RunConfig& config, std::int64_t n) {
  const MixturePlace place = data.mixture()(n);
  const Dataset& dataset = data[place.source];
  const std::int64_t sample = sources[place.source].sampler(place.number);
  const TokenRun run = SampleIndex(dataset.manifest(), config.data.sequence).locate(sample);
  const std::string source =
      data.count() == 1 ? "" : fmt::format(" of {}", config.data.train[place.source].name);
  return fmt::format("sample {}{} ({} tokens {} to {}, {})", sample, source,
                     dataset.manifest().shards.at(run.shard).path, run.first,
                     run.first + run.count - 1, documents_of(dataset, run));
}

}  // namespace

std::vector<std::string> data_origin(const TrainingData& data, const RunConfig& config,
                                     std::int64_t batch, const std::vector<double>& micro_losses,
                                     std::size_t most) {
  const std::vector<LoaderSource> sources = data.sources();
  const std::int64_t micro_batch = config.train.micro_batch;
  const auto tokens = static_cast<double>(micro_batch * config.data.sequence);
  std::vector<std::string> lines;
  for (const std::size_t micro : largest_first(micro_losses)) {
    if (lines.size() == most) {
      break;
    }
    const std::int64_t first =
        config.batches().before(batch) + static_cast<std::int64_t>(micro) * micro_batch;
    std::vector<std::string> samples;
    for (std::int64_t i = 0; i < micro_batch; ++i) {
      samples.push_back(describe_sample(data, sources, config, first + i));
    }
    lines.push_back(fmt::format("micro-batch {}, loss {:.6g}: {}", micro,
                                micro_losses[micro] / tokens, fmt::join(samples, ", ")));
  }
  return lines;
}

}  // namespace trireme
