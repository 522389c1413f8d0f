// Says which bytes each rank writes or reads in each transfer, with IOR's meaning of its sizes: a
// file consists of segments; a segment of a shared file holds one block per rank, and that of a
// file per process one block; a block consists of transfers. Pure functions.
#pragma once

#include <cstdint>

namespace trireme {

struct IoLayout {
  std::int64_t block_bytes = std::int64_t{64} << 20;
  std::int64_t transfer_bytes = std::int64_t{1} << 20;  // divides block_bytes
  std::int64_t segments = 1;
  int ranks = 1;
  bool file_per_process = false;
  // Random order. In a shared file the transfers of each segment are dealt to all ranks, and each
  // belongs to exactly one of them.
  bool random = false;
  std::uint64_t seed = 1;

  // Throws ConfigError if the sizes do not fit together.
  void check() const;
  std::int64_t transfers_per_rank() const { return segments * transfers_per_block(); }
  std::int64_t bytes_per_rank() const { return segments * block_bytes; }
  std::int64_t total_bytes() const { return bytes_per_rank() * ranks; }
  std::int64_t file_bytes() const { return file_per_process ? bytes_per_rank() : total_bytes(); }
  // Returns the place of a rank's transfer number i, in bytes from the start of its file.
  std::int64_t offset(int rank, std::int64_t i) const;

 private:
  std::int64_t transfers_per_block() const { return block_bytes / transfer_bytes; }
};

// Returns how many ranks the reader of a file is away from its writer, so that nobody reads what
// the caches of its own node hold: `steps` nodes if the job has several nodes, else `steps` ranks.
// ranks_per_node: of consecutive ranks; 1 if neighbours are on different nodes.
int reader_shift(int steps, int nodes, int ranks_per_node, int ranks);

}  // namespace trireme
