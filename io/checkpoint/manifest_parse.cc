#include <algorithm>
#include <iterator>
#include <map>

#include <nlohmann/json.hpp>

#include "io/checkpoint/generation.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/tiling.h"
#include "src/base/data_error_in.h"
#include "src/base/digest.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/sealed_json.h"
#include "src/base/units.h"
#include "src/keys/manifest_fields.h"

namespace trireme {
namespace {

using nlohmann::json;

StoredShard parse_shard(const json& object) {
  StoredShard shard;
  shard.file = text_field(object, "file");
  if (!parse_shard_file_name(shard.file)) {
    throw DataError(fmt::format("'{}' is not a valid shard name", shard.file));
  }
  shard.bytes = count_field(object, "bytes");
  shard.digest = parse_hex64(text_field(object, "xxh3"));
  shard.block_digests = split_hex64(text_field(object, "blocks"));
  const std::int64_t count = round_up(shard.bytes, kDigestBlockBytes) / kDigestBlockBytes;
  if (static_cast<std::int64_t>(shard.block_digests.size()) != count) {
    throw DataError(
        fmt::format("{} has {}, but its {} bytes need {}", shard.file,
                    counted(static_cast<std::int64_t>(shard.block_digests.size()), "block digest"),
                    shard.bytes, count));
  }
  if (object.contains("sha256")) {
    shard.sha256 = text_field(object, "sha256");
    if (shard.sha256.size() != 64 ||
        shard.sha256.find_first_not_of("0123456789abcdef") != std::string::npos) {
      throw DataError(fmt::format("{}: '{}' is not a SHA-256", shard.file, shard.sha256));
    }
  }
  if (object.contains("tags")) {
    shard.tags = split_tags(text_field(object, "tags"));
    if (shard.tags.size() != shard.block_digests.size()) {
      throw DataError(fmt::format("{} has {} for {}", shard.file,
                                  counted(std::ssize(shard.tags), "tag"),
                                  counted(std::ssize(shard.block_digests), "block")));
    }
  }
  return shard;
}

// Checks that the product does not overflow, since the numbers may be hostile.
Shape parse_shape(const std::vector<std::int64_t>& extents, DType dtype) {
  if (extents.size() > 4) {
    throw DataError(fmt::format("a tensor has {} axes; at most 4 are supported", extents.size()));
  }
  std::int64_t bytes = size_of(dtype);
  for (const std::int64_t extent : extents) {
    if (extent != 0 && bytes > kMostCount / extent) {
      throw DataError("a tensor has more than 2^60 bytes");
    }
    bytes *= std::max<std::int64_t>(extent, 1);
  }
  return Shape(extents);
}

StoredBlock parse_block(const json& object, const StoredTensor& tensor,
                        const std::vector<StoredShard>& shards) {
  StoredBlock block;
  block.shard = count_field(object, "shard", 0, static_cast<std::int64_t>(shards.size()) - 1);
  block.offset = count_field(object, "offset");
  const std::string kind = text_field(object, "kind");
  if (kind != "box" && kind != "flat") {
    throw DataError(fmt::format("unknown block kind '{}': expected box or flat", kind));
  }
  block.extent = {kind == "box" ? Extent::Kind::box : Extent::Kind::flat,
                  counts_field(object, "start"), counts_field(object, "length")};
  const StoredShard& shard = shards[static_cast<std::size_t>(block.shard)];
  if (!block.extent.fits(tensor.shape) ||
      block.extent.elements() * size_of(tensor.dtype) > shard.bytes - block.offset) {
    throw DataError(fmt::format("a block lies outside its tensor or outside {}", shard.file));
  }
  return block;
}

StoredTensor parse_tensor(const json& object, const std::vector<StoredShard>& shards) {
  StoredTensor tensor;
  tensor.name = text_field(object, "name");
  if (tensor.name.empty() || tensor.name.find('\0') != std::string::npos) {
    throw DataError("a tensor's name is empty or contains a zero byte");
  }
  try {
    tensor.dtype = parse_dtype(text_field(object, "dtype"));
    tensor.shape = parse_shape(counts_field(object, "shape"), tensor.dtype);
    for (const json& block : array_field(object, "blocks")) {
      tensor.blocks.push_back(parse_block(block, tensor, shards));
    }
  } catch (const DataError& e) {
    throw DataError(fmt::format("tensor {}: {}", tensor.name, e.what()));
  }
  return tensor;
}

void parse_tables(const json& object, std::vector<StoredShard>& shards,
                  std::vector<StoredTensor>& tensors) {
  for (const json& shard : array_field(object, "shards")) {
    shards.push_back(parse_shard(shard));
    if (shards.size() > 1 && *parse_shard_file_name(shards[shards.size() - 2].file) >=
                                 *parse_shard_file_name(shards.back().file)) {
      throw DataError("the shards are not sorted by number");
    }
  }
  for (const json& tensor : array_field(object, "tensors")) {
    tensors.push_back(parse_tensor(tensor, shards));
    if (tensors.size() > 1 && tensors[tensors.size() - 2].name >= tensors.back().name) {
      throw DataError("the tensors are not sorted by name");
    }
  }
}

std::string tiling_fault(const StoredTensor& tensor) {
  std::vector<Extent> extents;
  for (const StoredBlock& block : tensor.blocks) {
    extents.push_back(block.extent);
  }
  return tiling_fault(extents, tensor.shape);
}

// Throws DataError if two blocks share bytes of a shard.
void check_blocks_apart(const Manifest& manifest) {
  struct Span {
    std::int64_t begin;
    std::int64_t end;
    const StoredTensor* tensor;
  };
  std::vector<std::vector<Span>> spans(manifest.shards.size());
  for (const StoredTensor& tensor : manifest.tensors) {
    for (const StoredBlock& block : tensor.blocks) {
      const std::int64_t bytes = block.extent.elements() * size_of(tensor.dtype);
      spans[static_cast<std::size_t>(block.shard)].push_back(
          {block.offset, block.offset + bytes, &tensor});
    }
  }
  for (std::size_t shard = 0; shard < spans.size(); ++shard) {
    std::sort(spans[shard].begin(), spans[shard].end(), [](const Span& a, const Span& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    for (std::size_t i = 1; i < spans[shard].size(); ++i) {
      const Span& before = spans[shard][i - 1];
      const Span& after = spans[shard][i];
      if (after.begin < before.end) {
        throw DataError(fmt::format(
            "{} and {} share bytes {} to {} of {}", before.tensor->name, after.tensor->name,
            after.begin, std::min(before.end, after.end) - 1, manifest.shards[shard].file));
      }
    }
  }
}

// Sets the identity of the data key, and checks that all shards are encrypted, or none.
void parse_data_key(const json& object, Manifest& manifest) {
  if (object.contains("encryption")) {
    manifest.data_key = parse_encryption(object);
  }
  for (const StoredShard& shard : manifest.shards) {
    if (shard.tags.empty() != manifest.data_key.empty()) {
      throw DataError(fmt::format("the checkpoint is {}encrypted, but {} is {}",
                                  manifest.data_key.empty() ? "not " : "", shard.file,
                                  shard.tags.empty() ? "not" : "encrypted"));
    }
  }
}

// Reports whether the text is a dataset's manifest, even if its seal is invalid, for a clearer
// message.
bool claims_to_be_dataset(std::string_view text) {
  return plain_field(text, "format") == json("trireme-dataset");
}

Manifest parse_fields(const json& object) {
  if (text_field(object, "format") != kManifestFormat) {
    throw DataError("not the manifest of a Trireme checkpoint");
  }
  Manifest manifest;
  manifest.software = text_field(object, "software");
  manifest.created = text_field(object, "created");
  manifest.generation = count_field(object, "generation", 0, kMostGeneration);
  manifest.read_back = flag_field(object, "read_back");
  manifest.meta = {count_field(object, "step"),
                   count_field(object, "samples"),
                   JsonValue(object_field(object, "config")),
                   JsonValue(object_field(object, "numerics")),
                   JsonValue(object_field(object, "extra")),
                   label_of(object)};
  // Otherwise, older programs would use what they should refuse.
  const bool is_labelled = count_field(object, "version") == kManifestVersion;
  if (manifest.meta.label.has_value() != is_labelled) {
    throw DataError(fmt::format("{}, but 'version' is {}: the manifest was edited",
                                is_labelled ? "it has no label" : "it has a label",
                                count_field(object, "version")));
  }
  manifest.seal = text_field(object, "seal");
  parse_tables(object, manifest.shards, manifest.tensors);
  parse_data_key(object, manifest);
  for (const StoredTensor& tensor : manifest.tensors) {
    if (const std::string fault = tiling_fault(tensor); !fault.empty()) {
      throw DataError(fmt::format("tensor {}: {}", tensor.name, fault));
    }
  }
  check_blocks_apart(manifest);
  return manifest;
}

}  // namespace

Manifest parse_manifest(std::string_view text, const std::string& origin) {
  try {
    return parse_fields(unseal_json(text, kManifestVersion));
  } catch (const DataError& e) {
    throw DataError(
        fmt::format("{}: {}", origin,
                    claims_to_be_dataset(text)
                        ? "this is a dataset, not a checkpoint (`trireme data info` describes it)"
                        : printable(e.what())));
  }
}

ShardTable parse_shard_table(std::string_view text, const std::string& origin) {
  try {
    ShardTable table;
    parse_tables(parse_json(text), table.shards, table.tensors);
    return table;
  } catch (const DataError& e) {
    throw data_error_in(origin, e);
  }
}

void merge_tables(std::vector<ShardTable> tables, Manifest& manifest) {
  std::map<std::string, StoredTensor> by_name;
  for (ShardTable& table : tables) {
    const auto number = static_cast<std::int64_t>(manifest.shards.size());
    std::move(table.shards.begin(), table.shards.end(), std::back_inserter(manifest.shards));
    for (StoredTensor& tensor : table.tensors) {
      auto& whole =
          by_name
              .try_emplace(tensor.name, StoredTensor{tensor.name, tensor.dtype, tensor.shape, {}})
              .first->second;
      if (whole.dtype != tensor.dtype || !(whole.shape == tensor.shape)) {
        throw InternalError(fmt::format("ranks disagree about the shape of {}", tensor.name));
      }
      for (StoredBlock& block : tensor.blocks) {
        block.shard = number;
        whole.blocks.push_back(std::move(block));
      }
    }
  }
  for (auto& [name, tensor] : by_name) {
    if (const std::string fault = tiling_fault(tensor); !fault.empty()) {
      throw InternalError(
          fmt::format("the blocks saved for {} do not add up to the tensor: {}", name, fault));
    }
    manifest.tensors.push_back(std::move(tensor));
  }
}

}  // namespace trireme
