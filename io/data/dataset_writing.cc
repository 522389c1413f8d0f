#include "io/data/dataset_writing.h"

#include <optional>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/data/file_lock.h"
#include "io/data/pack_folder.h"
#include "io/data/shard_note.h"
#include "src/base/check.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

constexpr const char* kGoOn = "pack";
constexpr const char* kComplete = "complete";

// Joins one rank's notes to send them to all ranks. The line "index length\n" precedes each note.
std::string pack_notes(const std::vector<std::pair<std::size_t, std::string>>& notes) {
  std::string text;
  for (const auto& [index, note] : notes) {
    text += fmt::format("{} {}\n{}", index, note.size(), note);
  }
  return text;
}

void unpack_notes(std::string_view text, int token_bytes, std::vector<ShardNote>& notes) {
  while (!text.empty()) {
    const std::size_t line_end = text.find('\n');
    const std::string line(text.substr(0, line_end));
    std::size_t used = 0;
    const std::size_t index = std::stoull(line, &used);
    const std::size_t length = std::stoull(line.substr(used));
    check(index < notes.size(), "a note belongs to a planned shard");
    notes[index] = parse_note(text.substr(line_end + 1, length), token_bytes);
    text.remove_prefix(line_end + 1 + length);
  }
}

// Shards that an earlier start has packed count for a dataset with the same label only: with
// another one, a label would be lost by an interruption.
std::string label_digest(const std::optional<Label>& label) {
  return label ? sha256_hex(to_json(*label).dump()) : "";
}

// Writes the shards of one rank.
class RankWork {
 public:
  // key: encrypts the shards; null if they are not to be encrypted.
  RankWork(const DatasetJob& job, const RankGroup& ranks, std::shared_ptr<const DataKey> key)
      : job_(job), ranks_(ranks), key_(std::move(key)) {
    for (std::size_t i = first(); i < job_.shards.size(); i += stride()) {
      total_ += job_.shards[i].input_bytes;
    }
  }

  // Returns the number of shards kept from an earlier run, then the notes of all shards of this
  // rank.
  std::string run() {
    std::vector<std::pair<std::size_t, std::string>> notes;
    report(0);  // starts the clock
    for (std::size_t i = first(); i < job_.shards.size(); i += stride()) {
      const std::int64_t before = done_;
      notes.emplace_back(i, note_text(shard(i)));
      done_ = before + job_.shards[i].input_bytes;
      report(0);
    }
    return fmt::format("{}\n", kept_) + pack_notes(notes);
  }

 private:
  std::size_t first() const { return static_cast<std::size_t>(ranks_.rank); }
  std::size_t stride() const { return static_cast<std::size_t>(ranks_.size); }

  ShardNote shard(std::size_t index) {
    const ShardJob& plan = job_.shards[index];
    const fs::path path = note_path(job_.folder, index);
    const std::string fingerprint = plan.fingerprint + plan.restart_fingerprint +
                                    (key_ == nullptr ? "" : key_->id()) + label_digest(job_.label);
    if (auto note = trusted_note(path, job_.folder, job_.format.token_bytes, fingerprint)) {
      ++kept_;
      return *note;
    }
    ::unlink(path.c_str());
    ShardWriter writer(job_.folder, shard_name(index, key_ != nullptr), job_.format, key_);
    ShardNote note;
    note.fingerprint = fingerprint;
    note.counts = plan.fill(writer, [this](std::int64_t bytes) { report(bytes); });
    if (writer.tokens() > 0) {
      note.shard = writer.finish();
    }
    write_file_durably(path, note_text(note));
    return note;
  }

  void report(std::int64_t bytes) {
    done_ += bytes;
    if (job_.progress) {
      job_.progress(done_, total_);
    }
  }

  const DatasetJob& job_;
  const RankGroup& ranks_;
  std::shared_ptr<const DataKey> key_;
  std::int64_t total_ = 0;
  std::int64_t done_ = 0;
  std::int64_t kept_ = 0;
};

// HDF5 stores attributes in its headers, which have room for 64 KiB.
void check_texts(const ShardFormat& format) {
  constexpr std::size_t kMostBytes = 4096;
  for (const auto& [name, text] :
       {std::pair<const char*, const std::string&>("source", format.source),
        {"tokenizer", format.tokenizer}}) {
    if (text.size() > kMostBytes) {
      throw ConfigError(
          fmt::format("--{0} is {1} bytes long: at most {2} are stored with a dataset; write a "
                      "shorter text, for example the name of a file with the rest",
                      name, text.size(), kMostBytes));
    }
  }
}

DatasetManifest manifest_of(const DatasetJob& job, const std::vector<ShardNote>& notes,
                            const std::shared_ptr<const DataKey>& key) {
  DatasetManifest manifest;
  manifest.token_bytes = job.format.token_bytes;
  manifest.vocab = job.format.vocab;
  manifest.tokenizer = job.format.tokenizer;
  manifest.tokenizer_digest = job.format.tokenizer_digest;
  manifest.source = job.format.source;
  manifest.fingerprint = fingerprint_of(job);
  manifest.label = job.label;
  for (const ShardNote& note : notes) {
    if (note.shard) {
      manifest.shards.push_back(*note.shard);
    }
  }
  if (key != nullptr) {
    manifest.data_key = key->id();
    set_key(manifest, key, job.folder);
  }
  return manifest;
}

PackReport report_of(const DatasetJob& job, const DatasetManifest& manifest) {
  PackReport report;
  report.folder = job.folder;
  report.shards = static_cast<std::int64_t>(manifest.shards.size());
  report.n_tokens = manifest.n_tokens();
  report.n_docs = manifest.n_docs();
  report.bytes = manifest.bytes();
  report.digest = manifest.digest();
  report.is_encrypted = manifest.is_encrypted();
  report.label = manifest.label;
  return report;
}

// Writes what makes the folder a dataset. Returns the SHA-256 of the manifest's file.
std::string write_manifest(const DatasetJob& job, const DatasetManifest& manifest,
                           const std::shared_ptr<const FolderKey>& key) {
  const std::string text = manifest_text(manifest);
  const fs::path path = job.folder / kDatasetManifestName;
  if (key != nullptr) {
    const std::string seal = parse_dataset_manifest(text, path.string()).seal;
    write_file_durably(job.folder / std::string(kKeysFileName), keys_text(*key, seal));
  }
  write_file_durably(path, text);
  remove_notes(job.folder);
  return sha256_hex(text);
}

// Ends the pack. texts: what RankWork::run() returned on each rank.
PackReport finish(const DatasetJob& job, const RankGroup& ranks,
                  const std::shared_ptr<const FolderKey>& key,
                  const std::vector<std::string>& texts) {
  std::vector<ShardNote> notes(job.shards.size());
  std::int64_t kept = 0;
  for (const std::string& text : texts) {
    const std::size_t line_end = text.find('\n');
    kept += std::stoll(text.substr(0, line_end));
    unpack_notes(std::string_view(text).substr(line_end + 1), job.format.token_bytes, notes);
  }
  const DatasetManifest manifest = manifest_of(job, notes, data_key_of(key));
  PackReport report = report_of(job, manifest);
  report.kept_shards = kept;
  for (const ShardNote& note : notes) {
    report.counts += note.counts;
  }
  if (manifest.shards.empty()) {
    if (ranks.rank == 0) {
      abandon_folder(job.folder);
    }
    throw DataError(fmt::format(
        "{}: there is nothing to pack, because {} (files read: {}, skipped as binary: "
        "{})",
        job.folder.string(), job.empty_because, report.counts.files, report.counts.binary_files));
  }
  if (ranks.rank == 0) {
    report.manifest_sha256 = write_manifest(job, manifest, key);
  }
  return report;
}

// Returns the report on a dataset that an earlier run has finished.
PackReport report_complete(const DatasetJob& job) {
  const fs::path path = job.folder / kDatasetManifestName;
  DatasetManifest manifest = parse_dataset_manifest(read_file(path), path.string());
  if (job.encrypts()) {
    set_key(manifest, data_key_of(job.make_key(job.folder)), job.folder);
  }
  PackReport report = report_of(job, manifest);
  report.was_complete = true;
  return report;
}

// Returns null if the shards are not to be encrypted.
std::shared_ptr<const FolderKey> begin_key(const DatasetJob& job, const RankGroup& ranks) {
  if (!job.encrypts()) {
    return nullptr;
  }
  std::shared_ptr<const FolderKey> key = job.make_key(job.folder);
  if (ranks.rank == 0) {
    keep_key_text(job.folder, *key);
  }
  ranks.broadcast("");  // no rank encrypts before the key is kept
  return key;
}

}  // namespace

PackReport write_dataset(const DatasetJob& job, const RankGroup& ranks) {
  check_texts(job.format);
  std::optional<FileLock> lock;
  std::string state;
  if (ranks.rank == 0) {
    state = is_complete(job) ? kComplete : kGoOn;
    if (state == kGoOn) {
      lock = prepare_folder(job);
    }
  }
  if (ranks.broadcast(state) == kComplete) {
    return report_complete(job);
  }
  try {
    const std::shared_ptr<const FolderKey> key = begin_key(job, ranks);
    const PackReport report =
        finish(job, ranks, key, ranks.gather(RankWork(job, ranks, data_key_of(key)).run()));
    ranks.broadcast("");
    return report;
  } catch (...) {
    // If there are several ranks, others may still be writing to the folder. What an earlier start
    // has packed stays unfinished: without .pack, it would be a folder of shards without a label.
    if (ranks.size == 1 && !has_notes(job.folder) && !has_shards(job.folder)) {
      abandon_folder(job.folder);
    }
    throw;
  }
}

}  // namespace trireme
