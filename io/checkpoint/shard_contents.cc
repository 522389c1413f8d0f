#include "io/checkpoint/shard_contents.h"

#include "io/checkpoint/sealed_shard.h"
#include "io/checkpoint/shard_plan.h"
#include "io/checkpoint/tiling.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

SafetensorsHeader read_header(const File& file, const Manifest& manifest, std::int64_t shard) {
  const std::int64_t bytes =
      safetensors_head_bytes(read_start(file, manifest, shard, 8), file.size());
  return parse_safetensors_header(read_start(file, manifest, shard, bytes), file.size());
}

}  // namespace

ShardContents::ShardContents(const Manifest& manifest)
    : manifest_(manifest), parts_(manifest.shards.size()) {
  for (const StoredTensor& tensor : manifest.tensors) {
    for (const StoredBlock& block : tensor.blocks) {
      parts_[static_cast<std::size_t>(block.shard)].push_back({&tensor, &block});
    }
  }
}

ShardContents::Entries ShardContents::expected(std::int64_t shard) const {
  Entries entries;
  for (const auto& [tensor, block] : parts_[static_cast<std::size_t>(shard)]) {
    const std::string name = block_name(tensor->name, block->extent, tensor->shape);
    const std::int64_t bytes = block->extent.elements() * size_of(tensor->dtype);
    entries[name] = {
        name, tensor->dtype,
        is_whole(block->extent, tensor->shape) ? tensor->shape.to_vector() : block->extent.length,
        block->offset, block->offset + bytes};
  }
  return entries;
}

std::vector<std::string> ShardContents::header_faults(const File& file, std::int64_t shard) const {
  const std::string name = file.path().string();
  const Entries entries = expected(shard);
  std::vector<std::string> faults;
  try {
    SafetensorsHeader header = read_header(file, manifest_, shard);
    if (header.entries.size() != entries.size()) {
      faults.push_back(fmt::format(
          "{}: the header lists {}, the manifest {}", name,
          counted(static_cast<std::int64_t>(header.entries.size()), "tensor"), entries.size()));
    }
    for (SafetensorsEntry& entry : header.entries) {
      entry.begin += header.data_offset;
      entry.end += header.data_offset;
      const auto found = entries.find(entry.name);
      if (found == entries.end() || !(found->second == entry)) {
        faults.push_back(
            fmt::format("{}: the header and the manifest disagree about {}", name, entry.name));
      }
    }
  } catch (const DataError& e) {
    faults.push_back(fmt::format("{}: {}", name, e.what()));
  }
  return faults;
}

}  // namespace trireme
