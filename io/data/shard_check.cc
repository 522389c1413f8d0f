#include "io/data/shard_check.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "io/h5/crash_guard.h"
#include "io/h5/h5_file.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

template <class Value>
void expect(const std::filesystem::path& path, const char* what, const Value& found,
            const Value& wanted) {
  if (found != wanted) {
    throw DataError(fmt::format("{}: {} is '{}', but the manifest says '{}'", path.string(), what,
                                found, wanted));
  }
}

void expect_dataset(const H5File& file, const char* name, std::int64_t elements, int element_bytes,
                    std::int64_t offset) {
  const auto info = file.dataset(name);
  if (!info || !info->contiguous || !info->integers || !info->little_endian || info->has_sign) {
    throw DataError(
        fmt::format("{}: {} is not a contiguous dataset of unsigned little-endian "
                    "integers (trireme data convert makes one)",
                    file.path().string(), name));
  }
  expect(file.path(), name, info->elements(), elements);
  expect(file.path(), name, info->element_bytes, element_bytes);
  expect(file.path(), name, info->offset, offset);
}

// Offsets must ascend from 0 to n_tokens, with at least one token per document.
void check_doc_offsets(const std::filesystem::path& path, const ShardEntry& shard) {
  const File file = File::open_to_read(path);
  std::vector<std::uint64_t> offsets(static_cast<std::size_t>(shard.n_docs + 1));
  file.read_exactly_at(shard.docs_offset, offsets.data(), shard.docs_bytes);
  const bool rising =
      std::adjacent_find(offsets.begin(), offsets.end(), std::greater_equal<>()) == offsets.end();
  if (!rising || offsets.front() != 0 ||
      offsets.back() != static_cast<std::uint64_t>(shard.n_tokens)) {
    throw DataError(
        fmt::format("{}: /doc_offsets do not ascend from 0 to {}", path.string(), shard.n_tokens));
  }
}

}  // namespace

ShardFormat shard_format(const DatasetManifest& manifest) {
  return {.token_bytes = manifest.token_bytes,
          .vocab = manifest.vocab,
          .tokenizer = manifest.tokenizer,
          .tokenizer_digest = manifest.tokenizer_digest,
          .source = manifest.source};
}

void check_layout(const std::filesystem::path& path, const ShardEntry& shard,
                  const ShardFormat& format, std::chrono::milliseconds limit) {
  const CrashGuard guard(path);
  const H5File file = H5File::open_to_read(path, limit);
  const auto text = [&](const char* name) {
    return file.text_attribute(name).value_or("(absent)");
  };
  const auto integer = [&](const char* name) { return file.integer_attribute(name).value_or(-1); };
  expect(path, "attribute 'format'", text("format"), std::string(kShardFormatName));
  expect(path, "attribute 'version'", integer("version"), kShardVersion);
  expect(path, "attribute 'n_tokens'", integer("n_tokens"), shard.n_tokens);
  expect(path, "attribute 'n_docs'", integer("n_docs"), shard.n_docs);
  expect(path, "attribute 'vocab'", integer("vocab"), format.vocab);
  expect(path, "attribute 'tokenizer'", text("tokenizer"), format.tokenizer);
  expect(path, "attribute 'tokenizer_digest'", text("tokenizer_digest"), format.tokenizer_digest);
  expect_dataset(file, "tokens", shard.n_tokens, format.token_bytes, shard.data_offset);
  expect_dataset(file, "doc_offsets", shard.n_docs + 1, 8, shard.docs_offset);
  if (shard.has_mask()) {
    expect_dataset(file, kLossMaskName, shard.n_tokens, 1, shard.mask_offset);
  }
}

void check_shard(const std::filesystem::path& path, const ShardEntry& shard,
                 const ShardFormat& format, std::chrono::milliseconds limit) {
  check_layout(path, shard, format, limit);
  check_doc_offsets(path, shard);
}

}  // namespace trireme
