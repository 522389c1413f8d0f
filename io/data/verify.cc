#include "io/data/verify.h"

#include <algorithm>
#include <optional>
#include <set>

#include "io/data/block_digests.h"
#include "io/data/dataset_shard.h"
#include "io/data/sealed_check.h"
#include "io/data/shard_check.h"
#include "io/data/widen_tokens.h"
#include "src/base/error.h"
#include "src/base/keys_name.h"
#include "src/base/provenance_name.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Finds the largest token as the blocks of a file are read.
class LargestToken {
 public:
  LargestToken(const ShardEntry& entry, int token_bytes)
      : begin_(entry.data_offset),
        end_(entry.data_offset + entry.data_bytes),
        token_bytes_(token_bytes),
        widened_(static_cast<std::size_t>(kBlockBytes / token_bytes)) {}

  void see(const void* block, std::int64_t bytes) {
    const std::int64_t from = std::max(begin_, at_);
    const std::int64_t to = std::min(end_, at_ + bytes);
    if (from < to) {
      const auto* raw = static_cast<const std::byte*>(block) + (from - at_);
      largest_ = std::max(
          largest_, widen_tokens(raw, token_bytes_, (to - from) / token_bytes_, widened_.data()));
    }
    at_ += bytes;
  }
  std::uint32_t value() const { return largest_; }

 private:
  std::int64_t begin_;
  std::int64_t end_;
  int token_bytes_;
  std::vector<std::int32_t> widened_;
  std::int64_t at_ = 0;
  std::uint32_t largest_ = 0;
};

class Verification {
 public:
  Verification(const fs::path& folder, const DatasetManifest& manifest,
               const std::function<void(std::int64_t, std::int64_t)>& progress)
      : folder_(folder), manifest_(manifest), progress_(progress) {}

  void run(int rank, int size) {
    std::vector<const ShardEntry*> mine;
    for (std::size_t i = static_cast<std::size_t>(rank); i < manifest_.shards.size();
         i += static_cast<std::size_t>(size)) {
      mine.push_back(&manifest_.shards[i]);
      total_ += manifest_.shards[i].bytes;
    }
    if (progress_) {
      progress_(0, total_);  // starts the clock
    }
    for (const ShardEntry* entry : mine) {
      try {
        shard(*entry);
      } catch (const PolicyError&) {
        throw;
      } catch (const Error& error) {
        report_.damage.emplace_back(error.what());
      }
      ++report_.shards;
    }
    if (rank == 0) {
      find_extras();
    }
  }

  VerifyReport take() { return std::move(report_); }

 private:
  void shard(const ShardEntry& entry) {
    const fs::path path = folder_ / entry.path;
    DatasetShard(path, entry).check_size();
    std::optional<SealedCheck> opened;
    if (manifest_.is_encrypted() && manifest_.is_open()) {
      opened.emplace(path, *manifest_.key, entry);
    }
    LargestToken largest(entry, manifest_.token_bytes);
    const FileDigests found =
        digest_file(File::open_to_read(path), [&](const void* block, std::int64_t bytes) {
          const void* const plain = opened ? opened->see(block, bytes) : block;
          if (plain != nullptr && manifest_.is_open()) {
            largest.see(plain, bytes);
          }
          report_.bytes += bytes;
          if (progress_) {
            progress_(report_.bytes, total_);
          }
        });
    if (opened) {
      report_.damage.insert(report_.damage.end(), opened->forged().begin(), opened->forged().end());
    }
    if (!compare(path, entry, found) || !manifest_.is_open() ||
        (opened && !opened->forged().empty())) {
      return;
    }
    if (opened) {
      opened->finish();
    } else {
      check_shard(path, entry, shard_format(manifest_));
    }
    if (largest.value() >= manifest_.vocab) {
      throw DataError(fmt::format("{}: the largest token is {}, outside the vocabulary of {}",
                                  path.string(), largest.value(), manifest_.vocab));
    }
  }

  // Lists every block that differs and returns whether none does.
  bool compare(const fs::path& path, const ShardEntry& entry, const FileDigests& found) {
    bool whole = true;
    for (std::size_t block = 0; block < entry.blocks.size(); ++block) {
      if (block >= found.blocks.size() || found.blocks[block] != entry.blocks[block]) {
        report_.damage.push_back(
            damage_text(path, static_cast<std::int64_t>(block), entry.bytes, entry.blocks[block],
                        block < found.blocks.size() ? found.blocks[block] : 0));
        whole = false;
      }
    }
    if (whole && found.whole != entry.xxh3) {
      throw DataError(
          fmt::format("{}: all blocks match, but the digest of the whole file does not: the "
                      "manifest contradicts itself",
                      path.string()));
    }
    return whole;
  }

  void find_extras() {
    std::set<std::string> known = {kDatasetManifestName, std::string(kProvenanceName)};
    if (manifest_.is_encrypted()) {
      known.insert(std::string(kKeysFileName));
    }
    if (manifest_.tokenizer != "bytes") {
      for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
        known.insert(std::string("tokenizer/") + name);
      }
    }
    for (const ShardEntry& entry : manifest_.shards) {
      known.insert(entry.path);
    }
    std::error_code code;
    for (const auto& entry : fs::recursive_directory_iterator(folder_, code)) {
      const std::string name = entry.path().lexically_relative(folder_);
      if (!entry.is_directory() && !known.contains(name)) {
        report_.extras.push_back(entry.path());
      }
    }
    std::ranges::sort(report_.extras);
  }

  const fs::path& folder_;
  const DatasetManifest& manifest_;
  const std::function<void(std::int64_t, std::int64_t)>& progress_;
  VerifyReport report_;
  std::int64_t total_ = 0;
};

}  // namespace

VerifyReport verify_shards(const fs::path& folder, const DatasetManifest& manifest, int rank,
                           int size,
                           const std::function<void(std::int64_t, std::int64_t)>& progress) {
  Verification verification(folder, manifest, progress);
  verification.run(rank, size);
  return verification.take();
}

}  // namespace trireme
