// Checks and small moves of the blocks of an all_to_all (communicator.h). Pure functions.
#pragma once

#include <span>

#include "mpi/communicator.h"

namespace trireme {

// InternalError unless the counts fill the buffers, one a rank, the types agree, this rank's own
// block has the same size on both sides, and the buffers do not overlap.
void check_blocks(const ConstView& send, std::span<const std::int64_t> send_counts,
                  const View& recv, std::span<const std::int64_t> recv_counts, int size, int rank);

// Copies a block of equal size.
void copy_block(const ConstView& from, const View& to);

}  // namespace trireme
