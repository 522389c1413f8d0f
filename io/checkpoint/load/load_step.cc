#include "io/checkpoint/load/load_step.h"

#include <fmt/ranges.h>

#include "mpi/self_communicator.h"
#include "src/base/error.h"

namespace trireme {

LoadStats load_step(const std::filesystem::path& folder, const Manifest& manifest,
                    std::span<const TensorBlock> blocks, const ShardIo& io) {
  const std::vector<std::string> wrong = mismatches(manifest, blocks);
  if (!wrong.empty()) {
    throw ConfigError(
        fmt::format("{} does not fit this run:\n  {}", folder.string(), fmt::join(wrong, "\n  ")));
  }
  SelfCommunicator self;
  CheckpointLoader loader(self, folder, manifest, io);
  (void)loader.load(blocks);
  return loader.stats();
}

}  // namespace trireme
