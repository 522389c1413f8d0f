// Reductions of the NCCL stand-in. Sums of 16-bit numbers are rounded after each term, as in NCCL.
#pragma once

#include <cstddef>

#include <nccl.h>

namespace sim {

// Returns 0 for a type that the stand-in does not know.
std::size_t bytes_of(ncclDataType_t type);

// to[i] = to[i] op from[i]; ncclAvg adds.
void reduce_into(std::byte* to, const std::byte* from, std::size_t bytes, ncclDataType_t type,
                 ncclRedOp_t operation);

// Divides the sums of ncclAvg by the number of ranks.
void finish_average(std::byte* sums, std::size_t bytes, ncclDataType_t type, int ranks);

}  // namespace sim
