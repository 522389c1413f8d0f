#include "src/app/data_provenance.h"

#include <algorithm>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/workers.h"
#include "io/data/dataset_manifest.h"
#include "src/app/command/version.h"
#include "src/base/clock.h"
#include "src/base/file.h"
#include "src/base/log.h"
#include "src/evidence/bundle.h"
#include "src/evidence/file_digests.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

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

}  // namespace

DataProvenance::DataProvenance(const PackOptions& options)
    : options_(options), started_(utc_now()) {
  const AuditConfig site = site_audit_config(environ);
  if (!site.key.empty()) {
    key_ = SigningKey::load(site.key);
    inputs_ = find_input_files(options.inputs, options.exclude, options.out);
  }
}

void DataProvenance::sign(const PackReport& report) const {
  if (!key_ || fs::exists(fs::symlink_status(report.folder / kBundleName))) {
    return;
  }
  Provenance provenance;
  provenance.build_type = kPackBuildType;
  const DatasetManifest manifest = parse_dataset_manifest(
      read_manifest_text(report.folder), (report.folder / kDatasetManifestName).string());
  std::vector<std::string> names = {kDatasetManifestName};
  for (const ShardEntry& shard : manifest.shards) {
    names.push_back(shard.path);
  }
  std::vector<fs::path> paths;
  for (const std::string& name : names) {
    paths.push_back(report.folder / name);
  }
  const std::vector<std::string> digests = digests_of(paths);
  for (std::size_t i = 0; i < names.size(); ++i) {
    provenance.subjects.push_back({names[i], digests[i]});
  }
  paths.clear();
  for (const InputFile& file : inputs_.files) {
    paths.emplace_back(file.path);
  }
  const std::vector<std::string> inputs = digests_of(paths);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_unchanged(inputs_.files[i])) {
      throw DataError(fmt::format(
          "{} was changed while it was packed, so that the dataset {} is not signed: delete the "
          "dataset and pack it again",
          paths[i].string(), report.folder.string()));
    }
    const std::string path = fs::absolute(paths[i]).lexically_normal().string();
    provenance.materials.push_back({"input", file_uri(path), inputs[i]});
  }
  *provenance.parameters = {{"inputs", options_.inputs},
                            {"exclude", options_.exclude},
                            {"tokenizer", options_.tokenizer},
                            {"field", options_.field},
                            {"validation_fraction", options_.validation_fraction},
                            {"source", options_.source}};
  const std::string host = host_name();
  *provenance.details = {{"folder", fs::absolute(report.folder).lexically_normal().string()},
                         {"hosts", {host}},
                         {"versions", nlohmann::json(version_json())}};
  provenance.builder = "urn:trireme:host:" + host;
  provenance.started = started_;
  provenance.finished = utc_now();
  provenance.invocation = fmt::format("{}/{}/{}", host, ::getpid(), started_);
  write_file_durably(
      report.folder / kBundleName,
      bundle_text(make_envelope(std::string(kStatementType), statement_text(provenance), &*key_),
                  ""));
}

}  // namespace trireme
