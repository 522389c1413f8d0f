#include "io/data/recode.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/data/block_digests.h"
#include "io/data/dataset.h"
#include "io/data/file_lock.h"
#include "io/data/pack_folder.h"
#include "io/data/shard_cipher.h"
#include "io/data/shard_entry_json.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/provenance_name.h"
#include "src/base/units.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

// Returns the name of a shard's other form: with the suffix of encrypted shards, or without.
std::string other_path(const std::string& path) {
  return path.ends_with(kSealedSuffix)
             ? path.substr(0, path.size() - std::string_view(kSealedSuffix).size())
             : path + kSealedSuffix;
}

void remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    throw_errno(errno, "remove", path);
  }
}

// Removes what the dataset had, or was to have, in its other form.
void remove_other_form(const fs::path& folder, const DatasetManifest& manifest) {
  for (const ShardEntry& entry : manifest.shards) {
    remove_file(folder / other_path(entry.path));
    remove_file(folder / (other_path(entry.path) + ".tmp"));
  }
  if (!manifest.is_encrypted()) {
    remove_file(folder / std::string(kKeysFileName));
  }
}

void check_folder(const fs::path& folder, const DatasetManifest& manifest) {
  std::error_code code;
  if (fs::exists(fs::symlink_status(folder / kProvenanceName, code))) {
    throw PolicyError(
        fmt::format("{0}: this dataset is signed, and its provenance would no longer be true: pack "
                    "it again, or remove {0}/{1} first",
                    folder.string(), kProvenanceName));
  }
  for (const ShardEntry& entry : manifest.shards) {
    const auto same = [&](const ShardEntry& each) { return each.path == other_path(entry.path); };
    if (std::ranges::any_of(manifest.shards, same)) {
      throw DataError(fmt::format("{}: the shards {} and {} are in the way of each other",
                                  folder.string(), entry.path, other_path(entry.path)));
    }
  }
  const std::int64_t available = free_bytes(folder);
  if (available < manifest.bytes()) {
    throw IoError(fmt::format(
        "{}: {} are needed for the new shards, but {} are free: free space, or copy the dataset "
        "elsewhere",
        folder.string(), format_bytes(manifest.bytes()), format_bytes(available)));
  }
}

// Keeps other processes from changing the dataset, as long as it exists.
class RecodeLock {
 public:
  explicit RecodeLock(const fs::path& folder)
      : path_(folder / kRecodeLockName), lock_(FileLock::try_take(path_)) {
    if (!lock_) {
      throw PolicyError(
          fmt::format("{}: another `trireme data encrypt` or `decrypt` changes this dataset: wait "
                      "for it to finish",
                      folder.string()));
    }
  }
  ~RecodeLock() { ::unlink(path_.c_str()); }
  RecodeLock(const RecodeLock&) = delete;
  RecodeLock& operator=(const RecodeLock&) = delete;

 private:
  fs::path path_;
  std::optional<FileLock> lock_;
};

// Recodes the shards of one rank.
class RecodeWork {
 public:
  RecodeWork(const RecodeOptions& options, const DatasetManifest& manifest, const DataKey& key)
      : options_(options), manifest_(manifest), key_(key) {}

  // Returns the new entries of the rank's shards, as JSON: [[number, entry], ...].
  std::string run(const RankGroup& ranks) {
    const auto first = static_cast<std::size_t>(ranks.rank);
    const auto stride = static_cast<std::size_t>(ranks.size);
    for (std::size_t i = first; i < manifest_.shards.size(); i += stride) {
      total_ += manifest_.shards[i].bytes;
    }
    advance(0);  // starts the clock
    nlohmann::ordered_json entries = nlohmann::ordered_json::array();
    for (std::size_t i = first; i < manifest_.shards.size(); i += stride) {
      entries.push_back({i, shard_entry_json(shard(manifest_.shards[i]))});
    }
    done_all_ = true;
    return entries.dump();
  }

  // Removes what it has written, unless run() has finished.
  ~RecodeWork() {
    for (const fs::path& path : written_) {
      if (!done_all_) {
        ::unlink(path.c_str());
      }
    }
  }
  RecodeWork(const RecodeWork&) = delete;
  RecodeWork& operator=(const RecodeWork&) = delete;

 private:
  ShardEntry shard(const ShardEntry& old) {
    ShardEntry entry = old;
    entry.path = other_path(old.path);
    const fs::path path = options_.folder / entry.path;
    const fs::path temporary = path.string() + ".tmp";
    remove_file(temporary);
    remove_file(path);
    written_.push_back(temporary);
    written_.push_back(path);
    if (options_.encrypts) {
      encrypt(old, temporary, entry);
    } else {
      decrypt(old, temporary, entry);
    }
    rename_durably(temporary, path);
    return entry;
  }

  void encrypt(const ShardEntry& old, const fs::path& to, ShardEntry& entry) {
    const fs::path from = options_.folder / old.path;
    const File file = File::open_to_read(from);
    const auto read = [&](std::int64_t offset, std::int64_t bytes, std::byte* plain) {
      file.read_exactly_at(offset, plain, bytes);
      const std::int64_t block = offset / kBlockBytes;
      const std::uint64_t expected = old.blocks[static_cast<std::size_t>(block)];
      if (const std::uint64_t found = xxh3(plain, bytes); found != expected) {
        throw DataError(damage_text(from, block, old.bytes, expected, found));
      }
    };
    File sealed = File::create_new(to);
    seal_shard(sealed, key_, read, entry, [this](std::int64_t bytes) { advance(bytes); });
    sealed.close();
    check_whole(from, entry.plain_xxh3, old.xxh3);
  }

  void decrypt(const ShardEntry& old, const fs::path& to, ShardEntry& entry) {
    const fs::path from = options_.folder / old.path;
    const File file = File::open_to_read(from);
    BlockCipher cipher = shard_cipher(key_, old);
    File plain_file = File::create_new(to);
    plain_file.reserve(old.bytes);
    std::vector<std::byte> sealed(static_cast<std::size_t>(kBlockBytes));
    std::vector<std::byte> plain(sealed.size());
    Xxh3 whole;
    for (std::int64_t block = 0; block < block_count(old.bytes); ++block) {
      const std::int64_t bytes = block_bytes(block, old.bytes);
      file.read_exactly_at(block * kBlockBytes, sealed.data(), bytes);
      open_shard_block(cipher, old, from, block, sealed.data(), plain.data());
      whole.update(plain.data(), bytes);
      entry.blocks[static_cast<std::size_t>(block)] = xxh3(plain.data(), bytes);
      plain_file.write_at(block * kBlockBytes, plain.data(), bytes);
      advance(bytes);
    }
    plain_file.sync();
    plain_file.close();
    check_whole(from, whole.value(), old.plain_xxh3);
    entry.xxh3 = whole.value();
    entry.salt.clear();
    entry.tags.clear();
    entry.sealed_xxh3.clear();
  }

  static void check_whole(const fs::path& path, std::uint64_t found, std::uint64_t expected) {
    if (found != expected) {
      throw DataError(
          fmt::format("{}: all blocks match, but the digest of the whole file does not: the "
                      "manifest contradicts itself",
                      path.string()));
    }
  }

  void advance(std::int64_t bytes) {
    done_ += bytes;
    if (options_.progress) {
      options_.progress(done_, total_);
    }
  }

  const RecodeOptions& options_;
  const DatasetManifest& manifest_;
  const DataKey& key_;
  std::vector<fs::path> written_;
  bool done_all_ = false;
  std::int64_t done_ = 0;
  std::int64_t total_ = 0;
};

// Returns the manifest of the dataset in its new form. texts: what RecodeWork::run() returned on
// each rank.
DatasetManifest recoded(const RecodeOptions& options, const DatasetManifest& old,
                        const std::shared_ptr<const DataKey>& key,
                        const std::vector<std::string>& texts) {
  DatasetManifest manifest = old;
  manifest.data_key.clear();
  manifest.key = nullptr;
  for (const std::string& text : texts) {
    for (const nlohmann::json& item : nlohmann::json::parse(text)) {
      manifest.shards[item[0].get<std::size_t>()] =
          parse_shard_entry(item[1], manifest.token_bytes);
    }
  }
  if (options.encrypts) {
    manifest.data_key = key->id();
    set_key(manifest, key, options.folder);
  }
  return manifest;
}

// Replaces the manifest, which makes the folder the new dataset, and removes the old shards.
void commit(const RecodeOptions& options, const DatasetManifest& manifest, const FolderKey& key) {
  const fs::path path = options.folder / kDatasetManifestName;
  const std::string text = manifest_text(manifest);
  if (options.encrypts) {
    const std::string seal = parse_dataset_manifest(text, path.string()).seal;
    write_file_durably(options.folder / std::string(kKeysFileName), keys_text(key, seal));
  }
  write_file_durably(path, text);
  remove_other_form(options.folder, manifest);
}

}  // namespace

RecodeReport recode(const RecodeOptions& options, const RankGroup& ranks) {
  std::optional<RecodeLock> lock;
  std::string text;
  if (ranks.rank == 0) {
    text = read_manifest_text(options.folder);
    lock.emplace(options.folder);
  }
  text = ranks.broadcast(text);
  DatasetManifest manifest =
      parse_dataset_manifest(text, (options.folder / kDatasetManifestName).string());
  RecodeReport report{manifest.is_encrypted() == options.encrypts, std::ssize(manifest.shards),
                      manifest.bytes(), ""};
  if (ranks.rank == 0 && !report.was_done) {
    check_folder(options.folder, manifest);
    Dataset(options.folder, text).check_sizes();
  }
  ranks.broadcast("");
  std::shared_ptr<const FolderKey> key;
  if (options.encrypts || manifest.is_encrypted()) {
    key = options.make_key(options.folder);
  }
  if (manifest.is_encrypted()) {
    set_key(manifest, data_key_of(key), options.folder);
  }
  report.digest = manifest.digest();
  if (!report.was_done) {
    const std::vector<std::string> texts =
        ranks.gather(RecodeWork(options, manifest, key->key).run(ranks));
    const DatasetManifest changed = recoded(options, manifest, data_key_of(key), texts);
    if (changed.digest() != report.digest) {
      throw DataError(fmt::format("{}: it changed while it was read", options.folder.string()));
    }
    if (ranks.rank == 0) {
      commit(options, changed, *key);
    }
  } else if (ranks.rank == 0) {
    remove_other_form(options.folder, manifest);
  }
  ranks.broadcast("");
  return report;
}

}  // namespace trireme
