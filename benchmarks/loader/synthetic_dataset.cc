#include "benchmarks/loader/synthetic_dataset.h"

#include <algorithm>
#include <vector>

#include "io/data/dataset_writing.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

void fill_shard(ShardWriter& writer, std::int64_t tokens) {
  std::vector<std::int32_t> piece(1 << 16);
  for (std::int64_t at = 0; at < tokens; at += std::ssize(piece)) {
    piece.resize(static_cast<std::size_t>(std::min(std::ssize(piece), tokens - at)));
    for (std::size_t i = 0; i < piece.size(); ++i) {
      piece[i] = static_cast<std::int32_t>(mix64(static_cast<std::uint64_t>(at) + i) & 255);
    }
    writer.append(piece);
  }
}

}  // namespace

void write_random_tokens(const std::filesystem::path& folder, int token_bytes, std::int64_t bytes,
                         const DatasetKeyMaker& make_key) {
  DatasetJob job;
  job.folder = folder;
  job.make_key = make_key;
  job.format = {.token_bytes = token_bytes,
                .vocab = token_bytes == 2 ? 257 : 1 << 17,
                .tokenizer = "bytes",
                .tokenizer_digest = "-",
                .source = "random"};
  job.shards.push_back({"synthetic", "", bytes, [=](ShardWriter& writer, const auto&) {
                          fill_shard(writer, bytes / token_bytes);
                          return PackCounts{};
                        }});
  write_dataset(job, {});
}

}  // namespace trireme
