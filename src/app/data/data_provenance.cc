#include "src/app/data/data_provenance.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "io/checkpoint/workers.h"
#include "io/data/block_digests.h"
#include "io/data/dataset_manifest.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/say.h"
#include "src/evidence/bundle.h"
#include "src/evidence/folder_materials.h"
#include "src/evidence/folder_subjects.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

DataError was_changed(const fs::path& folder, const std::string& name) {
  return DataError(
      fmt::format("{} was changed since it was packed, so that the dataset {} is not "
                  "signed: delete the dataset and pack it again",
                  (folder / name).string(), folder.string()));
}

// Returns the SHA-256 of the shards, in order. Compares what it reads with the manifest.
std::vector<std::string> shard_digests(const fs::path& folder, const DatasetManifest& manifest) {
  std::vector<std::string> digests(manifest.shards.size());
  parallel_for(available_processors(), static_cast<std::int64_t>(digests.size()),
               [&](std::int64_t i) {
                 const ShardEntry& shard = manifest.shards[static_cast<std::size_t>(i)];
                 Sha256 digest;
                 const FileDigests found = digest_file(
                     File::open_to_read(folder / shard.path),
                     [&](const void* block, std::int64_t bytes) { digest.update(block, bytes); });
                 if (found.whole != shard.xxh3) {
                   throw was_changed(folder, shard.path);
                 }
                 digests[static_cast<std::size_t>(i)] = digest.finish_hex();
               });
  return digests;
}

std::vector<Subject> subjects_of(const PackReport& report) {
  const std::string text = read_manifest_text(report.folder);
  const DatasetManifest manifest =
      parse_dataset_manifest(text, (report.folder / kDatasetManifestName).string());
  if (sha256_hex(text) != report.manifest_sha256) {
    throw was_changed(report.folder, kDatasetManifestName);
  }
  std::vector<Subject> subjects = {{kDatasetManifestName, sha256_hex(text)}};
  const std::vector<std::string> shards = shard_digests(report.folder, manifest);
  for (std::size_t i = 0; i < shards.size(); ++i) {
    subjects.push_back({manifest.shards[i].path, shards[i]});
  }
  add_other_files(report.folder, available_processors(), subjects);  // the tokenizer
  return subjects;
}

const char* dedup_name(Deduplication deduplication) {
  switch (deduplication) {
    case Deduplication::exact:
      return "exact";
    case Deduplication::minhash:
      return "minhash";
    case Deduplication::none:
      break;
  }
  return "none";
}

}  // namespace

void DataProvenance::warn_of_plain_names() const {
  if (statement_.has_key()) {
    say("warning: the dataset is encrypted, but its provenance, which audit.key signs, "
        "holds the path and the SHA-256 of each input file in plain: whoever can guess what is in "
        "a file can check that without a key. TRIREME_AUDIT__KEY= packs without a provenance");
  }
}

void DataProvenance::sign(const PackReport& report, const std::vector<InputFile>& inputs) const {
  if (!statement_.has_key()) {
    return;
  }
  if (report.was_complete) {
    if (!fs::exists(fs::symlink_status(report.folder / kProvenanceName))) {
      say(fmt::format(
          "warning: the dataset {} is not signed, because it was packed before: delete it and pack "
          "it again to sign it",
          report.folder.string()));
    }
    return;
  }
  Provenance provenance;
  provenance.build_type = kPackBuildType;
  provenance.subjects = subjects_of(report);
  provenance.materials = input_materials(
      inputs, fmt::format(", so that the dataset {} is not signed: delete the dataset and pack it "
                          "again",
                          report.folder.string()));
  *provenance.parameters = {{"inputs", options_.inputs},
                            {"exclude", options_.exclude},
                            {"tokenizer", options_.tokenizer},
                            {"field", options_.field},
                            {"validation_fraction", options_.validation_fraction},
                            {"dedup", dedup_name(options_.deduplication)},
                            {"source", options_.source}};
  *provenance.details = {{"folder", stated_path(report.folder)},
                         {"kept_shards", report.kept_shards}};
  const std::string text = statement_.bundle(std::move(provenance));
  if (std::ssize(text) > kMostDatasetBundleBytes) {
    throw DataError(fmt::format(
        "the dataset {} is complete, but not signed, because the statement that names its {} input "
        "files has {} bytes, more than the {} that can be verified: pack fewer, larger files",
        report.folder.string(), inputs.size(), text.size(), kMostDatasetBundleBytes));
  }
  write_file_durably(report.folder / kProvenanceName, text);
}

}  // namespace trireme
