#include "io/data/shard_entry_json.h"

#include <nlohmann/json.hpp>

#include "io/data/block_digests.h"
#include "io/data/shard_cipher.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/keys/manifest_fields.h"

namespace trireme {
namespace {

std::vector<std::uint64_t> parse_blocks(const std::string& text, std::int64_t bytes) {
  std::vector<std::uint64_t> blocks = split_hex64(text);
  if (static_cast<std::int64_t>(blocks.size()) != block_count(bytes)) {
    throw DataError(fmt::format("'blocks' holds {} digests, but {} bytes need {}", blocks.size(),
                                bytes, block_count(bytes)));
  }
  return blocks;
}

// Returns the text as a JSON string, with escapes for bytes that could disturb a terminal or a
// message.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

// Throws DataError unless the path is relative, names a file and has no part "." or "..".
void check_path(const std::string& path) {
  const std::filesystem::path parts(path);
  bool good = !path.empty() && path.find('\0') == std::string::npos && parts.is_relative() &&
              parts.has_filename();
  for (const std::filesystem::path& part : parts) {
    good = good && part != ".." && part != ".";
  }
  if (!good) {
    throw DataError(fmt::format(
        "the path {} is not a plain relative path within the dataset's folder", quoted(path)));
  }
}

// Reads what only encrypted shards have, if it is one.
void parse_sealed_fields(const nlohmann::json& object, ShardEntry& shard) {
  if (!object.contains("tags")) {
    return;
  }
  shard.salt = text_field(object, "salt");
  if (bytes_of_hex(shard.salt).size() != kSaltBytes) {
    throw DataError(fmt::format("'salt' is not {} hexadecimal digits", 2 * kSaltBytes));
  }
  shard.tags = split_tags(text_field(object, "tags"));
  if (shard.tags.size() != shard.blocks.size()) {
    throw DataError(fmt::format("'tags' holds {} tags, but there are {} blocks", shard.tags.size(),
                                shard.blocks.size()));
  }
  shard.sealed_xxh3 = bytes_of_hex(text_field(object, "plain_xxh3"));
  if (shard.sealed_xxh3.size() != kSealedDigestBytes) {
    throw DataError(
        fmt::format("'plain_xxh3' is not {} hexadecimal digits", 2 * kSealedDigestBytes));
  }
}

// All fields are at most 2^60, so that the sum of two can't overflow.
void check_places(const ShardEntry& shard, int token_bytes) {
  const auto fail = [&](const char* what) {
    throw DataError(fmt::format("shard {}: {}", shard.path, what));
  };
  if (shard.n_docs > shard.n_tokens) {
    fail("it has more documents than tokens");
  }
  if (shard.data_bytes != shard.n_tokens * token_bytes) {
    fail("data_bytes is not n_tokens times the size of a token");
  }
  if (shard.docs_bytes / 8 != shard.n_docs + 1 || shard.docs_bytes % 8 != 0) {
    fail("docs_bytes is not 8 x (n_docs + 1)");
  }
  if (shard.data_offset % 8 != 0 || shard.docs_offset % 8 != 0) {
    fail("a dataset starts at a byte that is not a multiple of 8");
  }
  if (shard.data_offset + shard.data_bytes > shard.bytes ||
      shard.docs_offset + shard.docs_bytes > shard.bytes) {
    fail("a dataset ends beyond the file");
  }
  if (shard.data_offset < shard.docs_offset + shard.docs_bytes &&
      shard.docs_offset < shard.data_offset + shard.data_bytes) {
    fail("/tokens and /doc_offsets overlap");
  }
}

// Reads what only shards with a loss mask have, if it is one.
void parse_mask(const nlohmann::json& object, ShardEntry& shard) {
  if (!object.contains("mask_bytes")) {
    return;
  }
  shard.mask_offset = count_field(object, "mask_offset", 8);
  shard.mask_bytes = count_field(object, "mask_bytes", 1);
  shard.n_targets = count_field(object, "n_targets", 0, shard.n_tokens);
  const auto is_apart = [&](std::int64_t offset, std::int64_t bytes) {
    return offset + bytes <= shard.mask_offset || shard.mask_offset + shard.mask_bytes <= offset;
  };
  if (shard.mask_bytes != shard.n_tokens || shard.mask_offset + shard.mask_bytes > shard.bytes ||
      !is_apart(shard.data_offset, shard.data_bytes) ||
      !is_apart(shard.docs_offset, shard.docs_bytes)) {
    throw DataError(fmt::format(
        "shard {}: /loss_mask is not one byte per token, within the file and beside other data",
        shard.path));
  }
}

}  // namespace

nlohmann::ordered_json shard_entry_json(const ShardEntry& shard) {
  nlohmann::ordered_json object;
  object["path"] = shard.path;
  object["bytes"] = shard.bytes;
  object["n_tokens"] = shard.n_tokens;
  object["n_docs"] = shard.n_docs;
  object["data_offset"] = shard.data_offset;
  object["data_bytes"] = shard.data_bytes;
  object["docs_offset"] = shard.docs_offset;
  object["docs_bytes"] = shard.docs_bytes;
  if (shard.has_mask()) {
    object["mask_offset"] = shard.mask_offset;
    object["mask_bytes"] = shard.mask_bytes;
    object["n_targets"] = shard.n_targets;
  }
  object["xxh3"] = hex64(shard.xxh3);
  object["blocks"] = join_hex64(shard.blocks);
  if (!shard.tags.empty()) {
    object["salt"] = shard.salt;
    object["tags"] = join_tags(shard.tags);
    object["plain_xxh3"] = hex_of_bytes(shard.sealed_xxh3);
  }
  return object;
}

ShardEntry parse_shard_entry(const nlohmann::json& object, int token_bytes) {
  ShardEntry shard;
  shard.path = text_field(object, "path");
  check_path(shard.path);
  shard.bytes = count_field(object, "bytes", 1);
  shard.n_tokens = count_field(object, "n_tokens", 1);
  shard.n_docs = count_field(object, "n_docs", 1);
  shard.data_offset = count_field(object, "data_offset", 8);
  shard.data_bytes = count_field(object, "data_bytes", 1);
  shard.docs_offset = count_field(object, "docs_offset", 8);
  shard.docs_bytes = count_field(object, "docs_bytes", 1);
  check_places(shard, token_bytes);
  parse_mask(object, shard);
  try {
    shard.xxh3 = parse_hex64(text_field(object, "xxh3"));
    shard.blocks = parse_blocks(text_field(object, "blocks"), shard.bytes);
    parse_sealed_fields(object, shard);
  } catch (const DataError& error) {
    throw DataError(fmt::format("shard {}: {}", shard.path, error.what()));
  }
  return shard;
}

}  // namespace trireme
