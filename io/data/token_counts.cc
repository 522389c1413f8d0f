#include "io/data/token_counts.h"

#include <algorithm>

namespace trireme {
namespace {

constexpr std::int64_t kMostCounted = std::int64_t{1} << 24;
constexpr std::int64_t kPieceTokens = std::int64_t{1} << 18;

}  // namespace

std::optional<TokenCounts> count_tokens(const Dataset& dataset, std::int64_t max_tokens) {
  const DatasetManifest& manifest = dataset.manifest();
  if (manifest.vocab > kMostCounted) {
    return std::nullopt;
  }
  const std::int64_t stride =
      std::max<std::int64_t>(manifest.n_tokens() / std::max<std::int64_t>(max_tokens, 1), 1);
  TokenCounts counts;
  counts.by_token.resize(static_cast<std::size_t>(manifest.vocab));
  std::vector<std::int32_t> tokens;
  std::vector<std::byte> scratch;
  for (std::size_t shard = 0; shard < manifest.shards.size(); ++shard) {
    const std::int64_t n_tokens = manifest.shards[shard].n_tokens;
    for (std::int64_t first = 0; first < n_tokens; first += kPieceTokens * stride) {
      const TokenRun run{shard, first, std::min(kPieceTokens, n_tokens - first)};
      tokens.resize(static_cast<std::size_t>(run.count));
      dataset.read(run, tokens, scratch);
      for (const std::int32_t token : tokens) {
        ++counts.by_token[static_cast<std::size_t>(token)];
      }
      counts.tokens += run.count;
    }
  }
  return counts;
}

}  // namespace trireme
