#include "src/interchange/new_checkpoint.h"

#include "io/checkpoint/names.h"
#include "src/base/clock.h"
#include "src/interchange/draft_folder.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Divides the tensors among shards, in their order.
std::vector<std::vector<StreamedTensor>> divide(const NewShards& all) {
  std::vector<std::vector<StreamedTensor>> shards;
  std::int64_t bytes = 0;
  for (const ModelTensor& tensor : all.tensors) {
    const std::int64_t more = tensor.shape.elements() * size_of(DType::f32);
    if (shards.empty() || bytes + more > all.shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().push_back({tensor.name, tensor.shape});
    bytes += more;
  }
  return shards;
}

}  // namespace

std::vector<ShardTable> write_new_shards(const NewShards& all, const fs::path& folder,
                                         Communicator& world) {
  const std::vector<std::vector<StreamedTensor>> shards = divide(all);
  std::string own;
  share_work(world, std::ssize(shards), [&](std::int64_t i) {
    own += to_text(write_streamed_shard(folder, i, shards[static_cast<std::size_t>(i)], all.make,
                                        all.key, all.io)) +
           '\0';
  });
  std::vector<ShardTable> tables(shards.size());
  const std::vector<std::string> texts = all_gather_text(world, own);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::size_t at = 0;
    for (std::size_t i = rank; i < shards.size(); i += texts.size()) {
      const std::size_t end = texts[rank].find('\0', at);
      tables[i] =
          parse_shard_table(std::string_view(texts[rank]).substr(at, end - at), "a rank's table");
      at = end + 1;
    }
  }
  return tables;
}

std::int64_t write_new_manifest(const fs::path& folder, std::vector<ShardTable> tables,
                                const CheckpointMeta& meta, const FolderKey* key, bool read_back) {
  Manifest manifest;
  manifest.software = "trireme";
  manifest.created = utc_now();
  manifest.read_back = read_back;
  manifest.meta = meta;
  manifest.data_key = key == nullptr ? "" : key->key.id();
  merge_tables(std::move(tables), manifest);
  const std::string text = to_text(manifest);
  const Manifest read = parse_manifest(text, "the new manifest");
  if (key != nullptr) {
    write_whole_file(folder / kKeysFileName, keys_text(*key, read.seal));
  }
  write_whole_file(folder / kManifestName, text);
  return manifest.bytes();
}

}  // namespace trireme
