#include "io/checkpoint/verify.h"

#include <memory>

#include "io/checkpoint/sealed_shard.h"
#include "io/checkpoint/shard_contents.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns why a block of an encrypted shard does not open, or "".
std::string fault_of_sealed(const Manifest& manifest, std::int64_t shard, std::int64_t block,
                            const std::byte* sealed) {
  const auto plain = std::make_unique_for_overwrite<std::byte[]>(kDigestBlockBytes);
  try {
    SealedShard(manifest, shard).open_block(block, sealed, plain.get());
    return "";
  } catch (const DataError& error) {
    return error.what();
  }
}

}  // namespace

std::vector<std::string> verify_step(const fs::path& step_folder, const Manifest& manifest,
                                     const ShardIo& io) {
  std::vector<std::string> faults;
  const ShardContents contents(manifest);
  const bool is_readable = manifest.data_key.empty() || manifest.key != nullptr;
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    BlockCheck opens;
    if (manifest.key != nullptr) {
      opens = [&manifest, i](std::int64_t block, const std::byte* at) {
        return fault_of_sealed(manifest, static_cast<std::int64_t>(i), block, at);
      };
    }
    std::vector<std::string> lines = verify_shard(step_folder, manifest.shards[i], io, opens);
    if (lines.empty() && is_readable) {
      const fs::path path = step_folder / manifest.shards[i].file;
      try {
        lines = contents.header_faults(File::open_to_read(path), static_cast<std::int64_t>(i));
      } catch (const IoError& e) {
        lines.emplace_back(e.what());
      }
    }
    faults.insert(faults.end(), lines.begin(), lines.end());
  }
  return faults;
}

}  // namespace trireme
