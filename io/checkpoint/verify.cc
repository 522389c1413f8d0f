#include "io/checkpoint/verify.h"

#include "io/checkpoint/shard_header.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;

std::vector<std::string> verify_step(const fs::path& step_folder, const Manifest& manifest,
                                     const ShardIo& io) {
  std::vector<std::string> faults;
  const ShardContents contents(manifest);
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    std::vector<std::string> lines = verify_shard(step_folder, manifest.shards[i], io);
    if (lines.empty()) {
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
