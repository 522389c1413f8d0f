// Decodes one stored chunk of a filtered HDF5 dataset. Pure functions that use neither libhdf5 nor
// files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trireme {

enum class ChunkFilter { deflate, shuffle, fletcher32 };

// Undoes the filters, the last one first. Bit i of `skipped` is set if filter i was not applied to
// this chunk. Throws DataError unless the result has exactly `chunk_bytes` bytes; never allocates
// much more than that, whatever the stored bytes claim.
std::vector<std::byte> decode_chunk(std::span<const std::byte> stored,
                                    const std::vector<ChunkFilter>& filters, std::uint32_t skipped,
                                    std::int64_t element_bytes, std::int64_t chunk_bytes);

// Returns whether `stored_bytes` can decode to `chunk_bytes`, since deflate expands data at most
// 1032 times.
bool may_decode_to(std::int64_t stored_bytes, std::int64_t chunk_bytes);

}  // namespace trireme
