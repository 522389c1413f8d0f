// Decoding one stored chunk of a filtered HDF5 dataset. Pure functions: no libhdf5, no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trireme {

enum class ChunkFilter { deflate, shuffle, fletcher32 };

// Undoes the filters, last one first. Bit i of `skipped` says that filter i was not applied to this
// chunk. DataError unless the result has exactly `chunk_bytes` bytes: no memory beyond that is
// taken, whatever the stored bytes claim.
std::vector<std::byte> decode_chunk(std::span<const std::byte> stored,
                                    const std::vector<ChunkFilter>& filters, std::uint32_t skipped,
                                    std::int64_t element_bytes, std::int64_t chunk_bytes);

// Whether `stored_bytes` may decode to `chunk_bytes`: deflate packs at most 1032 bytes into one.
bool may_decode_to(std::int64_t stored_bytes, std::int64_t chunk_bytes);

}  // namespace trireme
