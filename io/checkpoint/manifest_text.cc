#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/checkpoint/manifest.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/sealed_json.h"
#include "src/keys/manifest_fields.h"

namespace trireme {
namespace {

using nlohmann::json;

json to_json(const StoredShard& shard) {
  json object = {{"file", shard.file},
                 {"bytes", shard.bytes},
                 {"xxh3", hex64(shard.digest)},
                 {"blocks", join_hex64(shard.block_digests)}};
  if (!shard.sha256.empty()) {
    object["sha256"] = shard.sha256;
  }
  if (!shard.tags.empty()) {
    object["tags"] = join_tags(shard.tags);
  }
  return object;
}

json to_json(const StoredTensor& tensor) {
  json blocks = json::array();
  for (const StoredBlock& block : tensor.blocks) {
    blocks.push_back({{"shard", block.shard},
                      {"offset", block.offset},
                      {"kind", block.extent.kind == Extent::Kind::box ? "box" : "flat"},
                      {"start", block.extent.start},
                      {"length", block.extent.length}});
  }
  return {{"name", tensor.name},
          {"dtype", dtype_name(tensor.dtype)},
          {"shape", tensor.shape.to_vector()},
          {"blocks", blocks}};
}

std::int64_t version_of(const Manifest& manifest) {
  return manifest.meta.label         ? kManifestVersion
         : manifest.data_key.empty() ? kPlainManifestVersion
                                     : kEncryptedManifestVersion;
}

// Returns "key": [...] with one element per line.
template <class T>
std::string lines(const char* key, const std::vector<T>& items) {
  std::string text = fmt::format("\"{}\": [", key);
  const char* separator = "\n";
  for (const T& item : items) {
    text += separator + to_json(item).dump();
    separator = ",\n";
  }
  return text + "]";
}

}  // namespace

std::string to_text(const ShardTable& table) {
  return fmt::format("{{{},\n{}}}", lines("shards", table.shards), lines("tensors", table.tensors));
}

std::string to_text(const Manifest& manifest) {
  const CheckpointMeta& meta = manifest.meta;
  const bool is_plain = manifest.data_key.empty();
  const std::string encryption =
      is_plain
          ? ""
          : fmt::format("\"encryption\": {},\n",
                        json({{"cipher", kCipherName}, {"data_key", manifest.data_key}}).dump());
  const std::string label =
      meta.label ? fmt::format("\"label\": {},\n", to_json(*meta.label).dump()) : "";
  return seal_body(fmt::format(
      "{{\"format\": \"{}\", \"version\": {},\n"
      "\"software\": {}, \"created\": {}, \"generation\": {}, \"read_back\": {},\n"
      "\"step\": {}, \"samples\": {},\n"
      "\"config\": {},\n\"numerics\": {},\n\"extra\": {},\n{}{}{},\n{}",
      kManifestFormat, version_of(manifest), json(manifest.software).dump(),
      json(manifest.created).dump(), manifest.generation, manifest.read_back, meta.step,
      meta.samples, meta.config->dump(), meta.numerics->dump(), meta.extra->dump(), label,
      encryption, lines("shards", manifest.shards), lines("tensors", manifest.tensors)));
}

const StoredTensor* Manifest::find(std::string_view name) const {
  const auto at = std::lower_bound(
      tensors.begin(), tensors.end(), name,
      [](const StoredTensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return at != tensors.end() && at->name == name ? &*at : nullptr;
}

std::int64_t Manifest::bytes() const {
  std::int64_t sum = 0;
  for (const StoredShard& shard : shards) {
    sum += shard.bytes;
  }
  return sum;
}

}  // namespace trireme
