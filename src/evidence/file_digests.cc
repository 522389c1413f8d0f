#include "src/evidence/file_digests.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/evidence/worker_threads.h"

namespace trireme {
namespace {

// A chunk is still in a core's cache when its digest is computed.
constexpr std::int64_t kChunkBytes = std::int64_t{256} << 10;
// The disk reads this far ahead of the digest.
constexpr std::int64_t kAheadBytes = std::int64_t{32} << 20;

std::int64_t size_or_zero(const std::filesystem::path& path) {
  std::error_code code;
  const auto bytes = std::filesystem::file_size(path, code);
  return code ? 0 : static_cast<std::int64_t>(bytes);
}

}  // namespace

FileDigest digest_file(const std::filesystem::path& path) {
  FileDigest result;
  try {
    const File file = File::open_to_read(path);
    std::string chunk(static_cast<std::size_t>(kChunkBytes), '\0');
    Sha256 digest;
    file.will_need(0, kAheadBytes);
    for (std::int64_t got = kChunkBytes; got == kChunkBytes; result.bytes += got) {
      if (result.bytes % kAheadBytes == 0) {
        file.will_need(result.bytes + kAheadBytes, kAheadBytes);
      }
      got = file.read_at(result.bytes, chunk.data(), kChunkBytes);
      digest.update(chunk.data(), got);
    }
    result.sha256 = digest.finish_hex();
  } catch (const Error& error) {
    result.trouble = error.what();
    result.code = error.exit_code();
  }
  return result;
}

std::vector<FileDigest> digest_files(const std::vector<std::filesystem::path>& paths, int threads) {
  std::vector<FileDigest> results(paths.size());
  std::vector<std::int64_t> bytes(paths.size());
  std::transform(paths.begin(), paths.end(), bytes.begin(), size_or_zero);
  std::vector<std::size_t> order(paths.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return bytes[a] > bytes[b]; });
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < order.size(); at = next++) {
      results[order[at]] = digest_file(paths[order[at]]);
    }
  };
  work_in_threads(static_cast<int>(std::min<std::int64_t>(threads, std::ssize(order))), work);
  return results;
}

}  // namespace trireme
