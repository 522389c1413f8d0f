#include "io/h5/h5_chunk.h"

#include <algorithm>

#include <zlib.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::size_t kChecksumBytes = 4;
// Deflate expands data at most 1032 times; the rest is a margin for headers and checksums.
constexpr std::int64_t kMostInflation = 1040;
constexpr std::int64_t kHeaderBytes = 1024;

// Throws DataError if the result has more than `most_bytes` bytes.
std::vector<std::byte> inflate(std::span<const std::byte> packed, std::size_t most_bytes) {
  std::vector<std::byte> plain(most_bytes);
  uLongf bytes = most_bytes;
  const int code = ::uncompress(reinterpret_cast<Bytef*>(plain.data()), &bytes,
                                reinterpret_cast<const Bytef*>(packed.data()), packed.size());
  if (code != Z_OK) {
    throw DataError(code == Z_BUF_ERROR ? "its deflate stream is truncated or too long"
                                        : "its deflate stream is damaged");
  }
  plain.resize(bytes);
  return plain;
}

// The shuffle filter stores byte 0 of all elements, then byte 1 of all elements, and so on. Bytes
// after the last whole element stay in place.
std::vector<std::byte> unshuffle(std::span<const std::byte> planes, std::size_t element_bytes) {
  std::vector<std::byte> plain(planes.begin(), planes.end());
  const std::size_t elements = planes.size() / element_bytes;
  for (std::size_t byte = 0; byte < element_bytes; ++byte) {
    for (std::size_t i = 0; i < elements; ++i) {
      plain[i * element_bytes + byte] = planes[byte * elements + i];
    }
  }
  return plain;
}

// Computes Fletcher's 32-bit checksum (Fletcher, IEEE Trans. Commun. 30, 1982) over big-endian
// words of 16 bits; an odd last byte is padded with zero. Adding the carry keeps the sums modulo
// 65535.
std::uint32_t fletcher32(std::span<const std::byte> data) {
  constexpr std::size_t kWordsBetweenFolds = 256;  // sums stay far below 32 bits
  const auto fold = [](std::uint32_t sum) { return (sum & 0xffff) + (sum >> 16); };
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  for (std::size_t at = 0, words = 0; at < data.size(); at += 2, ++words) {
    const auto second = at + 1 < data.size() ? std::to_integer<std::uint32_t>(data[at + 1]) : 0;
    low += std::to_integer<std::uint32_t>(data[at]) << 8 | second;
    high += low;
    if (words % kWordsBetweenFolds == 0) {
      low = fold(low);
      high = fold(high);
    }
  }
  return fold(fold(high)) << 16 | fold(fold(low));
}

// Verifies the checksum at the end of the data and removes it.
void check_and_cut(std::vector<std::byte>& data) {
  if (data.size() < kChecksumBytes) {
    throw DataError("it is too short for its checksum");
  }
  const std::size_t bytes = data.size() - kChecksumBytes;
  std::uint32_t stored = 0;
  for (std::size_t i = 0; i < kChecksumBytes; ++i) {
    stored |= std::to_integer<std::uint32_t>(data[bytes + i]) << (8 * i);
  }
  data.resize(bytes);
  const std::uint32_t found = fletcher32(data);
  // HDF5 before 1.6.3 stored the two bytes of each half in the other order.
  const std::uint32_t swapped = (found & 0x00ff00ff) << 8 | (found >> 8 & 0x00ff00ff);
  if (stored != found && stored != swapped) {
    throw DataError("its checksum (fletcher32) does not match");
  }
}

}  // namespace

bool may_decode_to(std::int64_t stored_bytes, std::int64_t chunk_bytes) {
  return chunk_bytes / kMostInflation <= stored_bytes + kHeaderBytes;
}

std::vector<std::byte> decode_chunk(std::span<const std::byte> stored,
                                    const std::vector<ChunkFilter>& filters, std::uint32_t skipped,
                                    std::int64_t element_bytes, std::int64_t chunk_bytes) {
  std::vector<std::byte> data(stored.begin(), stored.end());
  const std::size_t most_bytes =
      static_cast<std::size_t>(chunk_bytes) + kChecksumBytes * filters.size();
  for (std::size_t i = filters.size(); i-- > 0;) {
    if ((skipped >> i & 1) != 0) {
      continue;
    }
    switch (filters[i]) {
      case ChunkFilter::deflate:
        data = inflate(data, most_bytes);
        break;
      case ChunkFilter::shuffle:
        data = unshuffle(data, static_cast<std::size_t>(element_bytes));
        break;
      case ChunkFilter::fletcher32:
        check_and_cut(data);
        break;
    }
  }
  if (static_cast<std::int64_t>(data.size()) != chunk_bytes) {
    throw DataError(fmt::format("it decodes to {} bytes instead of {}", data.size(), chunk_bytes));
  }
  return data;
}

}  // namespace trireme
