#include "src/app/data/data_provenance.h"

#include <algorithm>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/workers.h"
#include "io/data/block_digests.h"
#include "io/data/dataset_manifest.h"
#include "src/app/command/version.h"
#include "src/base/clock.h"
#include "src/base/digest.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/base/say.h"
#include "src/evidence/bundle.h"
#include "src/evidence/file_digests.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

DataError was_changed(const fs::path& folder, const std::string& name) {
  return DataError(
      fmt::format("{} was changed since it was packed, so that the dataset {} is not "
                  "signed: delete the dataset and pack it again",
                  (folder / name).string(), folder.string()));
}

std::vector<std::string> digests_of(const std::vector<fs::path>& paths) {
  std::vector<std::string> digests;
  for (const FileDigest& each : digest_files(paths, available_processors())) {
    if (each.sha256.empty()) {
      throw IoError(fmt::format("the dataset is complete, but not signed: {}", each.trouble));
    }
    digests.push_back(each.sha256);
  }
  return digests;
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

DataProvenance::DataProvenance(const PackOptions& options)
    : options_(options), started_(utc_now()) {
  const AuditConfig site = site_audit_config(environ);
  if (!site.key.empty()) {
    key_ = SigningKey::load(site.key);
  }
}

void DataProvenance::sign(const PackReport& report, const std::vector<InputFile>& inputs) const {
  if (!key_) {
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
  std::vector<fs::path> paths;
  for (const InputFile& file : inputs) {
    paths.emplace_back(file.path);
  }
  const std::vector<std::string> digests = digests_of(paths);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    if (!is_untouched(inputs[i])) {
      throw DataError(fmt::format(
          "{} was changed while it was packed, so that the dataset {} is not signed: delete the "
          "dataset and pack it again",
          paths[i].string(), report.folder.string()));
    }
    const std::string path = fs::absolute(paths[i]).lexically_normal().string();
    provenance.materials.push_back({"input", file_uri(path), digests[i]});
  }
  *provenance.parameters = {{"inputs", options_.inputs},
                            {"exclude", options_.exclude},
                            {"tokenizer", options_.tokenizer},
                            {"field", options_.field},
                            {"validation_fraction", options_.validation_fraction},
                            {"dedup", dedup_name(options_.deduplication)},
                            {"source", options_.source}};
  const std::string host = host_name();
  *provenance.details = {{"folder", fs::absolute(report.folder).lexically_normal().string()},
                         {"hosts", {host}},
                         {"kept_shards", report.kept_shards},
                         {"versions", nlohmann::json(version_json())}};
  provenance.builder = "urn:trireme:host:" + host;
  provenance.started = started_;
  provenance.finished = utc_now();
  provenance.invocation = fmt::format("{}/{}/{}", host, ::getpid(), started_);
  const std::string text = bundle_text(
      make_envelope(std::string(kStatementType), statement_text(provenance), &*key_), "");
  if (std::ssize(text) > kMostDatasetBundleBytes) {
    throw DataError(fmt::format(
        "the dataset {} is complete, but not signed, because the statement that names its {} input "
        "files has {} bytes, more than the {} that can be verified: pack fewer, larger files",
        report.folder.string(), inputs.size(), text.size(), kMostDatasetBundleBytes));
  }
  write_file_durably(report.folder / kProvenanceName, text);
}

}  // namespace trireme
