#include "io/data/dataset.h"

#include <algorithm>
#include <cstring>

#include <sys/resource.h>

#include "io/data/dataset_keys.h"
#include "io/data/document_index.h"
#include "io/data/encrypted_shard.h"
#include "io/data/widen_tokens.h"
#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/keys/key_ring.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// The default shuffle reads windows of 16 pieces of 8 MiB, each of which lies in 9 blocks, while
// the loader already reads in the next window (sampler.h).
constexpr std::size_t kCachedBlocks = 160;

DatasetManifest parsed(const fs::path& folder, std::string_view manifest_text) {
  return parse_dataset_manifest(manifest_text, (folder / kDatasetManifestName).string());
}

// All shards stay open, and large datasets have more shards than the usual soft limit of 1024
// files.
void allow_open_files(std::size_t files) {
  constexpr rlim_t kOthers = 256;
  rlimit limit{};
  const rlim_t wanted = files + kOthers;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
    limit.rlim_cur = std::min(wanted, limit.rlim_max);
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

std::uint32_t token_at(const std::byte* raw, int token_bytes, std::int64_t index) {
  std::uint32_t token = 0;
  std::memcpy(&token, raw + index * token_bytes, static_cast<std::size_t>(token_bytes));
  return token;
}

}  // namespace

Dataset Dataset::open(const fs::path& folder) {
  Dataset dataset(folder, read_manifest_text(folder));
  dataset.check_sizes();
  return dataset;
}

Dataset Dataset::open(const fs::path& folder, const KeyRing& ring) {
  const std::string text = read_manifest_text(folder);
  DatasetManifest manifest = parsed(folder, text);
  unlock(manifest, folder, ring);
  Dataset dataset(folder, text, std::move(manifest));
  dataset.check_sizes();
  return dataset;
}

Dataset::Dataset(const fs::path& folder, std::string_view manifest_text)
    : Dataset(folder, manifest_text, parsed(folder, manifest_text)) {}

Dataset::Dataset(const fs::path& folder, std::string_view manifest_text, DatasetManifest manifest)
    : folder_(folder), manifest_(std::move(manifest)), manifest_sha256_(sha256_hex(manifest_text)) {
  allow_open_files(manifest_.shards.size());
  if (manifest_.is_encrypted()) {
    cache_ = std::make_unique<BlockCache>(kCachedBlocks);
  }
  for (const ShardEntry& entry : manifest_.shards) {
    const fs::path path = folder_ / entry.path;
    if (cache_ == nullptr) {
      shards_.push_back(std::make_unique<DatasetShard>(path, entry));
    } else {
      shards_.push_back(
          std::make_unique<EncryptedShard>(path, entry, shards_.size(), manifest_.key, *cache_));
    }
    documents_.push_back(std::make_unique<DocumentIndex>(*shards_.back(), entry));
  }
}

Dataset::Dataset(Dataset&&) noexcept = default;
Dataset& Dataset::operator=(Dataset&&) noexcept = default;
Dataset::~Dataset() = default;

std::int64_t Dataset::samples(std::int64_t sequence) const {
  return SampleIndex(manifest_, sequence).samples();
}

void Dataset::check_sizes() const {
  for (const auto& shard : shards_) {
    shard->check_size();
  }
}

const std::byte* Dataset::read(const TokenRun& run, std::vector<std::byte>& scratch) const {
  const ShardEntry& entry = manifest_.shards[run.shard];
  check(run.first >= 0 && run.count >= 0 && run.first + run.count <= entry.n_tokens,
        "a run lies within its shard");
  return shards_[run.shard]->read(entry.data_offset + run.first * manifest_.token_bytes,
                                  run.count * manifest_.token_bytes, scratch);
}

void Dataset::read(const TokenRun& run, std::span<std::int32_t> to,
                   std::vector<std::byte>& scratch) const {
  check(static_cast<std::int64_t>(to.size()) == run.count, "there is room for the run");
  const std::byte* raw = read(run, scratch);
  if (widen_tokens(raw, manifest_.token_bytes, run.count, to.data()) >= manifest_.vocab) {
    check_vocabulary(run, raw);
  }
}

const std::byte* Dataset::read_mask(const TokenRun& run, std::vector<std::byte>& scratch) const {
  const ShardEntry& entry = manifest_.shards[run.shard];
  check(entry.has_mask() && run.first >= 0 && run.first + run.count <= entry.n_tokens,
        "a run of a masked dataset lies within its shard");
  return shards_[run.shard]->read(entry.mask_offset + run.first, run.count, scratch);
}

std::vector<std::int64_t> Dataset::document_offsets(std::size_t shard) const {
  return documents_[shard]->offsets();
}

void Dataset::document_ends(const TokenRun& run, std::vector<std::int64_t>& ends,
                            std::vector<std::byte>& scratch) const {
  check(run.first >= 0 && run.count >= 0 &&
            run.first + run.count <= manifest_.shards[run.shard].n_tokens,
        "a run lies within its shard");
  documents_[run.shard]->ends(run.first, run.count, ends, scratch);
}

void Dataset::will_need(const TokenRun& run) const {
  shards_[run.shard]->will_need(
      manifest_.shards[run.shard].data_offset + run.first * manifest_.token_bytes,
      run.count * manifest_.token_bytes);
}

void Dataset::check_vocabulary(const TokenRun& run, const std::byte* raw) const {
  for (std::int64_t i = 0; i < run.count; ++i) {
    const std::uint32_t token = token_at(raw, manifest_.token_bytes, i);
    if (token >= manifest_.vocab) {
      throw DataError(fmt::format(
          "{}: token {} (at byte {}) is {}, outside the vocabulary of {}: the dataset was written "
          "with a wrong vocabulary; pack or convert it again",
          shards_[run.shard]->path().string(), run.first + i,
          manifest_.shards[run.shard].data_offset + (run.first + i) * manifest_.token_bytes, token,
          manifest_.vocab));
    }
  }
}

}  // namespace trireme
