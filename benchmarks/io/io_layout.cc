#include "benchmarks/io/io_layout.h"

#include <fmt/core.h>

#include "io/data/feistel_permutation.h"
#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr std::int64_t kMostPerTransfer = std::int64_t{1} << 30;

}  // namespace

void IoLayout::check() const {
  if (transfer_bytes < 8 || transfer_bytes % 8 != 0 || transfer_bytes > kMostPerTransfer) {
    throw ConfigError(
        fmt::format("-t {}: a transfer must be a multiple of 8 bytes, and at most 1 GiB",
                    format_bytes(transfer_bytes)));
  }
  if (block_bytes < transfer_bytes || block_bytes % transfer_bytes != 0) {
    throw ConfigError(fmt::format("-b {} -t {}: the block must be a multiple of the transfer",
                                  format_bytes(block_bytes), format_bytes(transfer_bytes)));
  }
  if (segments < 1 || block_bytes > kMostBytes / segments / ranks) {
    throw ConfigError(fmt::format("-b {} -s {} on {}: files of this size do not exist",
                                  format_bytes(block_bytes), segments, counted(ranks, "rank")));
  }
}

std::int64_t IoLayout::offset(int rank, std::int64_t i) const {
  const std::int64_t per_block = transfers_per_block();
  const std::int64_t segment = i / per_block;
  const std::int64_t blocks = file_per_process ? 1 : ranks;
  // The number of the transfer within its segment of the file.
  std::int64_t slot = i % per_block + (file_per_process ? 0 : rank * per_block);
  if (random) {
    const std::uint64_t key = mix64(seed + mix64(static_cast<std::uint64_t>(segment)) +
                                    (file_per_process ? static_cast<std::uint64_t>(rank) : 0));
    slot = FeistelPermutation(blocks * per_block, key)(slot);
  }
  return segment * blocks * block_bytes + slot * transfer_bytes;
}

int reader_shift(int steps, int nodes, int ranks_per_node, int ranks) {
  const std::int64_t one = nodes > 1 ? ranks_per_node : 1;
  return static_cast<int>(steps * one % ranks);
}

}  // namespace trireme
