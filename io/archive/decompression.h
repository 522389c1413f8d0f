// Decompresses gzip (RFC 1952) and zstd (RFC 8878) files of strangers while they are read, in
// bounded memory. Files may have several members (gzip) or frames (zstd) one after another.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/archive/byte_stream.h"

namespace trireme {

enum class Compression { none, gzip, zstd };

// Returns whether a name ends with a suffix, which is in lower case, whatever case the name is in.
bool has_suffix(std::string_view name, std::string_view suffix);
// Returns how a file is compressed, by the end of its name: .gz and .tgz, or .zst, in any case.
Compression compression_of(std::string_view name);
// Returns the name of what the file holds: "a.txt" for "a.txt.gz", "a.tar" for "a.tgz".
std::string name_inside(std::string_view name);

// Bounds what a small file can expand to. Text shrinks to a tenth at most, logs to a hundredth.
struct DecompressionLimits {
  // A stream may expand to `ratio` times the compressed bytes read so far, and `free_bytes` more.
  std::int64_t ratio = 200;
  std::int64_t free_bytes = std::int64_t{64} << 20;
  // The largest window of zstd is 2^window_log bytes. Its memory is used only as far as data fills
  // it, which the ratio bounds.
  int window_log = 31;
};

// Returns the decompressed stream; borrows `from`. name: of the file, for messages. Precondition:
// `compression` is not none. Reading throws DataError for damaged data, data that is cut off, bytes
// behind the compressed data, a wrong checksum, and data that expands beyond the limits.
std::unique_ptr<ByteStream> decompress(ByteStream& from, Compression compression, std::string name,
                                       const DecompressionLimits& limits = {});

}  // namespace trireme
