#include "io/data/block_digests.h"

#include <fmt/core.h>

#include "src/base/digest.h"

namespace trireme {

FileDigests digest_file(const File& file,
                        const std::function<void(const void*, std::int64_t)>& each) {
  FileDigests digests;
  digests.bytes = file.size();
  const std::int64_t blocks = block_count(digests.bytes);
  digests.blocks.reserve(static_cast<std::size_t>(blocks));
  std::vector<char> buffer(static_cast<std::size_t>(kBlockBytes));
  Xxh3 whole;
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t bytes = block_bytes(block, digests.bytes);
    file.read_exactly_at(block * kBlockBytes, buffer.data(), bytes);
    whole.update(buffer.data(), bytes);
    digests.blocks.push_back(xxh3(buffer.data(), bytes));
    if (each) {
      each(buffer.data(), bytes);
    }
  }
  digests.whole = whole.value();
  return digests;
}

std::string damage_text(const std::filesystem::path& path, std::int64_t block,
                        std::int64_t file_bytes, std::uint64_t expected, std::uint64_t found) {
  const std::int64_t begin = block * kBlockBytes;
  return fmt::format(
      "{}: block {}, bytes [{}, {}): expected the XXH3 digest {}, but found {}: the data changed "
      "after it was packed; restore the file from a copy (`trireme data verify` lists all damage)",
      path.string(), block, begin, begin + block_bytes(block, file_bytes), hex64(expected),
      hex64(found));
}

}  // namespace trireme
