#include "io/data/dataset_manifest.h"

#include <set>

#include <nlohmann/json.hpp>

#include "io/data/block_digests.h"
#include "io/data/shard_entry_json.h"
#include "src/base/check.h"
#include "src/base/data_error_in.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/sealed_json.h"
#include "src/keys/manifest_fields.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

constexpr const char* kFormat = "trireme-dataset";
constexpr const char* kKind = "tokens";
constexpr std::int64_t kMaxManifestBytes = std::int64_t{1} << 31;
constexpr std::int64_t kMaxVocab = (std::int64_t{1} << 31) - 1;

void expect_text(const nlohmann::json& object, const char* key, const char* value) {
  const std::string& found = text_field(object, key);
  if (found != value) {
    throw DataError(
        fmt::format("'{}' is '{}', not '{}': this is not a dataset of Trireme", key, found, value));
  }
}

void expect_sum(const nlohmann::json& object, const char* key, std::int64_t sum) {
  const std::int64_t claimed = count_field(object, key);
  if (claimed != sum) {
    throw DataError(fmt::format("'{}' is {}, but the shards add up to {}", key, claimed, sum));
  }
}

int parse_token_bytes(const nlohmann::json& object) {
  const std::string& dtype = text_field(object, "dtype");
  if (dtype != "U16" && dtype != "U32") {
    throw DataError(fmt::format("'dtype' is '{}', not U16 or U32", dtype));
  }
  return dtype == "U16" ? 2 : 4;
}

std::int64_t parse_vocab(const nlohmann::json& object, int token_bytes) {
  const std::int64_t vocab = count_field(object, "vocab", 1);
  if (vocab > kMaxVocab || (token_bytes == 2 && vocab > 65536)) {
    throw DataError(fmt::format("a vocabulary of {} does not fit the dtype", vocab));
  }
  return vocab;
}

void parse_shards(const nlohmann::json& list, DatasetManifest& manifest) {
  std::set<std::string> paths;
  std::int64_t total = 0;
  for (const nlohmann::json& item : list) {
    manifest.shards.push_back(parse_shard_entry(item, manifest.token_bytes));
    const ShardEntry& shard = manifest.shards.back();
    if (!paths.insert(shard.path).second) {
      throw DataError(fmt::format("the shard '{}' is listed twice", shard.path));
    }
    if (__builtin_add_overflow(total, shard.bytes, &total)) {
      throw DataError("the shards' sizes overflow 64 bits");
    }
  }
  if (manifest.shards.empty()) {
    throw DataError("it lists no shards");
  }
}

bool holds_hdf5(const fs::path& folder) {
  std::error_code code;
  for (const fs::path& at : {folder, folder / "shards"}) {
    for (const auto& entry : fs::directory_iterator(at, code)) {
      const std::string extension = entry.path().extension();
      if (extension == ".h5" || extension == ".hdf5") {
        return true;
      }
    }
  }
  return false;
}

bool is_unfinished(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / ".pack", ignored);
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  std::error_code code;
  if (!fs::exists(folder, code)) {
    throw NotFound(fmt::format(
        "{}: the dataset does not exist: make it with `trireme data pack`, or name another folder",
        folder.string()));
  }
  if (is_unfinished(folder)) {
    throw DataError(
        fmt::format("{}: this dataset is unfinished: run the same `trireme data pack` or `convert` "
                    "command again, which continues where it stopped",
                    folder.string()));
  }
  if (!fs::is_directory(folder, code) || holds_hdf5(folder)) {
    throw DataError(
        fmt::format("{}: not a dataset: a dataset is a folder with a {}. If this is an HDF5 file "
                    "of another program, convert it with `trireme data convert`",
                    folder.string(), kDatasetManifestName));
  }
  throw DataError(
      fmt::format("{}: this folder is not a dataset: it has no {}. Make a dataset with `trireme "
                  "data pack`; a packed folder may contain the datasets train/ and validation/",
                  folder.string(), kDatasetManifestName));
}

// Sets the identity of the data key, and checks that all shards are encrypted, or none.
void parse_data_key(const nlohmann::json& object, DatasetManifest& manifest) {
  if (object.contains("encryption")) {
    manifest.data_key = parse_encryption(object);
  }
  for (const ShardEntry& shard : manifest.shards) {
    if (shard.tags.empty() == manifest.is_encrypted()) {
      throw DataError(fmt::format("the dataset is {}encrypted, but {} is {}",
                                  manifest.is_encrypted() ? "" : "not ", shard.path,
                                  shard.tags.empty() ? "not" : "encrypted"));
    }
  }
}

void check_version(const nlohmann::json& object, const DatasetManifest& manifest) {
  for (const ShardEntry& shard : manifest.shards) {
    if (shard.has_mask() != manifest.has_mask()) {
      throw DataError(fmt::format("some shards have a loss mask, but {} differs", shard.path));
    }
  }
  const std::int64_t claimed = count_field(object, "version");
  if (claimed != manifest.version()) {
    throw DataError(fmt::format(
        "'version' is {}, but a dataset {} a label that is {}encrypted{} has version "
        "{}: the manifest was edited",
        claimed, manifest.label ? "with" : "without", manifest.is_encrypted() ? "" : "not ",
        manifest.has_mask() ? " and has a loss mask" : "", manifest.version()));
  }
}

DatasetManifest parse_fields(const nlohmann::json& object) {
  expect_text(object, "format", kFormat);
  expect_text(object, "kind", kKind);
  DatasetManifest manifest;
  manifest.token_bytes = parse_token_bytes(object);
  manifest.vocab = parse_vocab(object, manifest.token_bytes);
  const nlohmann::json& tokenizer = field(object, "tokenizer");
  manifest.tokenizer = text_field(tokenizer, "name");
  manifest.tokenizer_digest = text_field(tokenizer, "digest");
  manifest.source = text_field(object, "source");
  manifest.fingerprint = text_field(object, "fingerprint");
  expect_sum(object, "block_bytes", kBlockBytes);
  parse_shards(array_field(object, "shards"), manifest);
  expect_sum(object, "n_tokens", manifest.n_tokens());
  expect_sum(object, "n_docs", manifest.n_docs());
  manifest.seal = text_field(object, "seal");
  parse_data_key(object, manifest);
  manifest.label = label_of(object);
  check_version(object, manifest);
  if (!manifest.is_encrypted()) {
    expect_text(object, "digest", manifest.digest().c_str());
  }
  return manifest;
}

}  // namespace

std::int64_t DatasetManifest::n_tokens() const {
  std::int64_t sum = 0;
  for (const ShardEntry& shard : shards) {
    sum += shard.n_tokens;
  }
  return sum;
}

std::int64_t DatasetManifest::n_docs() const {
  std::int64_t sum = 0;
  for (const ShardEntry& shard : shards) {
    sum += shard.n_docs;
  }
  return sum;
}

std::int64_t DatasetManifest::n_targets() const {
  std::int64_t sum = 0;
  for (const ShardEntry& shard : shards) {
    sum += shard.has_mask() ? shard.n_targets : shard.n_tokens;
  }
  return sum;
}

std::int64_t DatasetManifest::bytes() const {
  std::int64_t sum = 0;
  for (const ShardEntry& shard : shards) {
    sum += shard.bytes;
  }
  return sum;
}

std::string DatasetManifest::digest() const {
  check(is_open(), "only those who have the key know the digest of an encrypted dataset");
  Sha256 digest;
  digest.update(fmt::format("{} {} {} {}\n", tokenizer, tokenizer_digest, token_bytes, vocab));
  for (const ShardEntry& shard : shards) {
    digest.update(fmt::format("{} {} {} {}\n", shard.bytes, shard.n_tokens, shard.n_docs,
                              hex64(shard.logical_xxh3())));
  }
  return "sha256:" + digest.finish_hex();
}

std::string manifest_text(const DatasetManifest& manifest) {
  nlohmann::ordered_json object;
  object["format"] = kFormat;
  object["version"] = manifest.version();
  object["kind"] = kKind;
  object["dtype"] = manifest.token_bytes == 2 ? "U16" : "U32";
  object["vocab"] = manifest.vocab;
  object["tokenizer"] = {{"name", manifest.tokenizer}, {"digest", manifest.tokenizer_digest}};
  object["n_tokens"] = manifest.n_tokens();
  object["n_docs"] = manifest.n_docs();
  object["block_bytes"] = kBlockBytes;
  if (!manifest.is_encrypted()) {
    object["digest"] = manifest.digest();
  }
  object["source"] = manifest.source;
  object["fingerprint"] = manifest.fingerprint;
  if (manifest.label) {
    object["label"] = to_json(*manifest.label);
  }
  if (manifest.is_encrypted()) {
    object["encryption"] = {{"cipher", kCipherName}, {"data_key", manifest.data_key}};
  }
  object["shards"] = nlohmann::ordered_json::array();
  for (const ShardEntry& shard : manifest.shards) {
    object["shards"].push_back(shard_entry_json(shard));
  }
  return seal_json(object);
}

DatasetManifest parse_dataset_manifest(std::string_view text, const std::string& name) {
  try {
    return parse_fields(unseal_json(text, kMaskedDatasetVersion));
  } catch (const DataError& error) {
    throw data_error_in(name, error);
  }
}

std::string read_manifest_text(const fs::path& folder) {
  try {
    return read_file(folder / kDatasetManifestName, kMaxManifestBytes);
  } catch (const NotFound&) {
    refuse_folder(folder);
  }
}

bool is_dataset_folder(const fs::path& folder) {
  const fs::path manifest = folder / kDatasetManifestName;
  std::error_code ignored;
  if (!fs::is_regular_file(fs::symlink_status(manifest, ignored))) {
    return is_unfinished(folder);
  }
  const File file = File::open_to_read(manifest);
  std::string start(512, '\0');
  start.resize(static_cast<std::size_t>(file.read_at(0, start.data(), std::ssize(start))));
  return start.find(fmt::format("\"{}\"", kFormat)) != std::string::npos;
}

}  // namespace trireme
