#include "src/train/saving/checkpoint_provenance.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/evidence/bundle.h"
#include "src/evidence/file_digests.h"
#include "src/evidence/folder_materials.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

constexpr std::size_t kMostSavesAtOnce = 2;  // the one that begins, and the one before it
constexpr const char* kOwnProgram = "/proc/self/exe";

constexpr const char* kValidation = "data.validation";

void add(std::vector<Material>& materials, std::vector<Material> more) {
  std::move(more.begin(), more.end(), std::back_inserter(materials));
}

Material own_program() {
  std::error_code unknown;
  const fs::path path = fs::read_symlink(kOwnProgram, unknown);
  const FileDigest digest = digest_file(kOwnProgram);
  if (digest.sha256.empty()) {
    throw IoError(fmt::format("the digest of the program for the provenance of checkpoints: {}",
                              digest.trouble));
  }
  return {"program", stated_uri(path), digest.sha256};
}

// Returns the text as a reader of JSON gets it: JSON cannot hold bytes that are not UTF-8.
std::string as_in_json(const std::string& text) {
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace))
      .get<std::string>();
}

// Returns joules to the thousandth, or null if they are not known.
json joules_json(const std::optional<double>& joules) {
  return joules ? json(std::round(1000 * *joules) / 1000) : json();
}

json energy_json(const EnergyUsed& energy) {
  json object = {{"since", energy.since}, {"cpu_joules", joules_json(energy.cpu_joules)}};
  if (energy.has_gpus) {
    object["gpu_joules"] = joules_json(energy.gpu_joules);
  }
  if (!energy.unknown.empty()) {
    object["unknown"] = as_in_json(energy.unknown);
  }
  return object;
}

}  // namespace

void add_step_details(const fs::path& step_folder, const StepDigests& digests,
                      nlohmann::ordered_json& details) {
  const auto digest = [&](const std::string& known, std::string_view name) {
    return known.empty() ? digest_file(step_folder / name).sha256 : known;
  };
  details["folder"] = stated_path(step_folder);
  details["manifest_sha256"] = nullptr;  // if retention has deleted the step by now
  if (const std::string found = digest(digests.manifest, kManifestName); !found.empty()) {
    details["manifest_sha256"] = found;
  }
  // Without audit.key there is no provenance.
  if (const std::string found = digest(digests.provenance, kProvenanceName); !found.empty()) {
    details["provenance_sha256"] = found;
  }
}

CheckpointProvenance::CheckpointProvenance(const RunConfig& config, const RunOrigin& origin,
                                           const std::vector<UsedDataset>& train)
    : origin_(origin) {
  check(origin.key.has_value(), "provenance needs a key");
  for (const UsedDataset& each : train) {
    add(common_.materials, folder_materials(each.key, each.folder, each.manifest_sha256));
  }
  const std::vector<EvaluationSet>& sets = config.data.validation;
  for (const EvaluationSet& set : sets) {
    try {
      const std::string digest = sha256_hex(read_file(set.path / kManifestName));
      add(common_.materials, folder_materials(set.key(sets.size()), set.path, digest));
    } catch (const Error&) {
      // The run ends when it opens the set, or it has been resumed and goes on without evaluations.
    }
  }
  if (config.distill.is_on()) {
    add(common_.materials,
        folder_materials("teacher", config.distill.teacher, config.distill.manifest_sha256));
  }
  common_.materials.push_back(own_program());
  if (!origin.bill.empty()) {
    common_.materials.push_back({"sbom", stated_uri(origin.bill), origin.bill_sha256});
  }
  const std::string text = as_in_json(origin.config_yaml);
  common_.materials.push_back(
      {"config", stated_uri(config.run_dir / "config.yaml"), sha256_hex(text)});
  *common_.parameters = {{"config", text}, {"arguments", origin.arguments}};
  *common_.details = {{"run", stated_path(config.run_dir)},
                      {"checkpoints", stated_uri(config.checkpoint_dir())},
                      {"hosts", origin.hosts},
                      {"ranks", origin.ranks},
                      {"job", origin.job},
                      {"versions", *origin.versions}};
  if (!origin.logs.key.empty()) {
    (*common_.details)["logs"] = {{"key", origin.logs.key}, {"contents", contents_of(origin.logs)}};
  }
  common_.builder =
      "urn:trireme:host:" + (origin.hosts.empty() ? std::string("unknown") : origin.hosts.front());
  common_.invocation = origin.invocation;
  common_.started = origin.started;
}

void CheckpointProvenance::opened_validation(const std::vector<UsedDataset>& sets) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::erase_if(common_.materials,
                [](const Material& each) { return each.name.starts_with(kValidation); });
  for (const UsedDataset& each : sets) {
    add(common_.materials, folder_materials(each.key, each.folder, each.manifest_sha256));
  }
}

void CheckpointProvenance::took_weights(const StepFolder& base) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::erase_if(common_.materials, [](const Material& each) {
    return each.name == kBaseMaterial ||
           each.name == std::string(kBaseMaterial) + std::string(kProvenanceSuffix);
  });
  add(common_.materials, folder_materials(kBaseMaterial, base.path, base.manifest_sha256));
}

std::string CheckpointProvenance::resumed(const Resumed& resumed) {
  const std::lock_guard<std::mutex> guard(mutex_);
  ancestors_.clear();
  is_lineage_unreadable_ = false;
  if (resumed.folder.empty()) {  // the nodes' memory holds no file that could be checked later
    parent_ = Material{"parent", "memory:" + step_folder_name(resumed.manifest.meta.step), ""};
    return "";
  }
  parent_ = manifest_material("parent", resumed.folder, resumed.manifest_sha256);
  const fs::path path = resumed.folder / kProvenanceName;
  std::error_code unknown;
  if (fs::symlink_status(path, unknown).type() == fs::file_type::not_found) {
    return "";
  }
  try {
    const std::string text = read_file(path, kMostBundleBytes);
    const std::vector<SignedStatement> statements = parse_bundle(text, path.string(), {});
    const Subject* const manifest = statements[0].provenance.find_subject(kManifestSubject);
    if (manifest == nullptr || manifest->sha256 != parent_->sha256) {
      throw DataError(fmt::format("{} is about another checkpoint", path.string()));
    }
    ancestors_ = kept_ancestors(text);
  } catch (const Error& error) {
    is_lineage_unreadable_ = true;
    return fmt::format("the provenance of later checkpoints does not include that of {}: {}",
                       resumed.folder.string(), error.what());
  }
  return "";
}

void CheckpointProvenance::used(std::int64_t step, const EnergyUsed& energy) {
  const std::lock_guard<std::mutex> guard(mutex_);
  energy_[step] = energy;
  while (energy_.size() > kMostSavesAtOnce) {
    energy_.erase(energy_.begin());
  }
}

std::string CheckpointProvenance::bundle(const Manifest& manifest, std::string_view manifest_text) {
  const std::lock_guard<std::mutex> guard(mutex_);
  Provenance provenance = common_;
  provenance.subjects.push_back({kManifestSubject, sha256_hex(manifest_text)});
  for (const StoredShard& shard : manifest.shards) {
    provenance.subjects.push_back({shard.file, shard.sha256});
  }
  (*provenance.details)["step"] = manifest.meta.step;
  (*provenance.details)["generation"] = manifest.generation;
  if (manifest.meta.label) {
    (*provenance.details)["label"] = to_json(*manifest.meta.label);
  }
  if (const auto energy = energy_.find(manifest.meta.step); energy != energy_.end()) {
    (*provenance.details)["energy"] = energy_json(energy->second);
  }
  provenance.finished = manifest.created;
  if (parent_) {
    provenance.materials.push_back(*parent_);
  }
  (*provenance.details)[kAncestorsDetail] = std::count(ancestors_.begin(), ancestors_.end(), '\n');
  if (is_lineage_unreadable_) {
    (*provenance.details)["lineage"] = kLineageUnreadable;
  }
  std::string text = bundle_text(
      make_envelope(std::string(kStatementType), statement_text(provenance), &*origin_.key),
      ancestors_);
  latest_ = {provenance.subjects.front().sha256, sha256_hex(text)};
  return text;
}

StepDigests CheckpointProvenance::latest() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return latest_;
}

}  // namespace trireme
