#include "io/checkpoint/verify.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "io/checkpoint/safetensors.h"
#include "io/checkpoint/shard_plan.h"
#include "io/checkpoint/tiling.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

SafetensorsHeader read_header(const fs::path& path) {
  const File file = File::open_to_read(path);
  std::string head(8, '\0');
  file.read_exactly_at(0, head.data(), 8);
  const std::int64_t bytes = safetensors_head_bytes(head, file.size());
  head.resize(static_cast<std::size_t>(bytes));
  file.read_exactly_at(0, head.data(), bytes);
  return parse_safetensors_header(head, file.size());
}

using Entries = std::map<std::string, SafetensorsEntry>;

// Returns what the manifest says about shard number `shard`, as entries of a header, but with
// offsets from the start of the file.
Entries expected_entries(const Manifest& manifest, std::int64_t shard) {
  Entries entries;
  for (const StoredTensor& tensor : manifest.tensors) {
    for (const StoredBlock& block : tensor.blocks) {
      if (block.shard == shard) {
        const std::string name = block_name(tensor.name, block.extent, tensor.shape);
        const std::int64_t bytes = block.extent.elements() * size_of(tensor.dtype);
        entries[name] = {
            name, tensor.dtype,
            is_whole(block.extent, tensor.shape) ? tensor.shape.to_vector() : block.extent.length,
            block.offset, block.offset + bytes};
      }
    }
  }
  return entries;
}

void compare_header(const fs::path& path, const Entries& expected,
                    std::vector<std::string>& faults) {
  try {
    SafetensorsHeader header = read_header(path);
    if (header.entries.size() != expected.size()) {
      faults.push_back(fmt::format(
          "{}: the header lists {}, the manifest {}", path.string(),
          counted(static_cast<std::int64_t>(header.entries.size()), "tensor"), expected.size()));
    }
    for (SafetensorsEntry& entry : header.entries) {
      entry.begin += header.data_offset;
      entry.end += header.data_offset;
      const auto found = expected.find(entry.name);
      if (found == expected.end() || !(found->second == entry)) {
        faults.push_back(fmt::format("{}: the header and the manifest disagree about {}",
                                     path.string(), entry.name));
      }
    }
  } catch (const PolicyError&) {
    throw;
  } catch (const Error& e) {
    faults.push_back(fmt::format("{}: {}", path.string(), e.what()));
  }
}

}  // namespace

std::vector<std::string> verify_step(const fs::path& step_folder, const Manifest& manifest,
                                     const ShardIo& io) {
  std::vector<std::string> faults;
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    const std::vector<std::string> lines = verify_shard(step_folder, manifest.shards[i], io);
    faults.insert(faults.end(), lines.begin(), lines.end());
    if (lines.empty()) {
      compare_header(step_folder / manifest.shards[i].file,
                     expected_entries(manifest, static_cast<std::int64_t>(i)), faults);
    }
  }
  return faults;
}

}  // namespace trireme
