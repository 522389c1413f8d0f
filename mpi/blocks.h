// Checks and copies the buffers that operations take (communicator.h). Pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "src/device/device.h"

namespace trireme {

// Throws InternalError unless the counts, one per rank, add up to the buffers' sizes in elements,
// the types agree, this rank's own block has the same size on both sides, and the buffers do not
// overlap.
void check_blocks(const ConstView& send, std::span<const std::int64_t> send_counts,
                  const View& recv, std::span<const std::int64_t> recv_counts, int size, int rank);

// Returns whether the two share a byte.
bool overlap(const ConstView& a, const View& b);

// Copies a block to one of equal size. Does nothing if both are the same memory.
void copy_block(const ConstView& from, const View& to);

}  // namespace trireme
