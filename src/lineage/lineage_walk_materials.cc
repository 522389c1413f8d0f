// See lineage_walk.h.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/data/dataset_keys.h"
#include "io/data/verify.h"
#include "io/tokens/dataset_tokenizer.h"
#include "src/base/digest.h"
#include "src/base/units.h"
#include "src/evidence/file_digests.h"
#include "src/lineage/lineage_walk.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostNamedInputs = 10;  // input files that are named one by one

// Adds a fault for an encrypted dataset that nothing can open. keys.json is not signed, since the
// recipients may change.
void check_keys_of_dataset(const fs::path& folder, FolderCheck& check) {
  if (!check.faults.empty()) {
    return;
  }
  try {
    const DatasetManifest manifest = parse_dataset_manifest(
        read_manifest_text(folder), (folder / kDatasetManifestName).string());
    if (manifest.is_encrypted()) {
      (void)read_dataset_keys(folder, manifest);
    }
  } catch (const Error& error) {
    check.faults.push_back({error.exit_code(), error.what()});
  }
}

}  // namespace

void LineageWalk::dataset_of(const Material& material, int depth) {
  if (is_too_far(material, depth)) {
    return;
  }
  const fs::path manifest = place_of(material);
  const fs::path folder = manifest.parent_path();
  std::error_code code;
  const FileDigest digest = fs::exists(manifest, code) ? digest_file(manifest) : FileDigest{};
  if (digest.sha256 == material.sha256) {
    visit_dataset(folder, depth, material.name);
    return;
  }
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(depth, material.name, folder.string());
  if (digest.sha256.empty() && digest.code != ExitCode::ok) {
    add_fault(digest.code, digest.trouble);
  } else if (digest.sha256.empty()) {
    add_fault(ExitCode::not_found, fmt::format("the dataset {} is gone: {} was not checked",
                                               folder.string(), material.name));
  } else {
    add_fault(ExitCode::bad_data,
              fmt::format("the dataset {} was changed: its manifest has the SHA-256 {}, and the "
                          "provenance states {}",
                          folder.string(), digest.sha256, material.sha256));
  }
  end_item(item, first, "");
}

// Finds out whether a dataset, base or teacher still has the provenance that it had when the run
// read it. What the provenance says is checked with the dataset or model.
void LineageWalk::dataset_provenance(const Material& material, int depth) {
  const fs::path path = place_of(material);
  std::error_code code;
  if (!fs::exists(path.parent_path() / kDatasetManifestName, code)) {
    return;  // it is gone, which its own material reports
  }
  const bool is_here = fs::exists(fs::symlink_status(path, code));
  const FileDigest digest = is_here ? digest_file(path) : FileDigest{};
  if (is_here && !material.sha256.empty() && digest.sha256 == material.sha256) {
    return;
  }
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(depth, material.name, path.string());
  if (material.sha256.empty()) {
    add_fault(
        ExitCode::not_found,
        fmt::format("the run could not read {}, so that its digest is unknown", path.string()));
  } else if (!is_here) {
    add_fault(
        ExitCode::bad_data,
        fmt::format("{} was removed: the provenance of a checkpoint names it", path.string()));
  } else if (digest.sha256.empty()) {
    add_fault(digest.code, digest.trouble);
  } else {
    add_fault(ExitCode::bad_data,
              fmt::format("{} was changed: its SHA-256 is {}, and the provenance of a checkpoint "
                          "states {}",
                          path.string(), digest.sha256, material.sha256));
  }
  end_item(item, first, "");
}

void LineageWalk::dataset(const fs::path& path, int depth, const std::string& role) {
  visit_dataset(path, depth, role);
  follow_branches();
}

void LineageWalk::visit_dataset(const fs::path& path, int depth, const std::string& role) {
  if (!seen_.insert("folder:" + without_links(path).string()).second) {
    return;
  }
  const std::size_t item = lineage.items.size();
  const std::size_t first = lineage.faults.size();
  const std::int64_t files = lineage.files;
  const std::int64_t bytes = lineage.bytes;
  add_item(depth, role, path.string());
  std::error_code code;
  const bool is_signed = fs::exists(fs::symlink_status(path / kProvenanceName, code));
  FolderCheck check;
  if (is_signed || depth == 0) {
    check = check_folder(path, {options_.trusted, options_.threads, {}, kMostDatasetBundleBytes});
    check_keys_of_dataset(path, check);
    take(check);
  } else {
    unsigned_dataset(path);
  }
  if (!check.statements.empty()) {
    lineage.items[item].facts = facts_of(check.statements[0]);
    if (check.statements[0].provenance.build_type != kPackBuildType) {
      add_fault(ExitCode::bad_data,
                fmt::format("{}: the provenance is not that of a dataset", path.string()));
    }
  }
  end_item(item, first,
           fmt::format("{} {}, {}", counted(lineage.files - files, "file"),
                       is_signed ? "as signed" : "as the manifest states",
                       format_bytes(lineage.bytes - bytes)));
  if (!check.statements.empty()) {
    materials(std::make_shared<const std::vector<SignedStatement>>(std::move(check.statements)), 0,
              path, depth + 1);
  }
}

// Checks a dataset whose manifest has the right digest, but which nobody has signed.
void LineageWalk::unsigned_dataset(const fs::path& path) {
  const auto check = [&] {
    const DatasetManifest manifest =
        parse_dataset_manifest(read_manifest_text(path), (path / kDatasetManifestName).string());
    const VerifyReport report = verify_shards(path, manifest, 0, 1, {});
    lineage.files += report.shards;
    lineage.bytes += report.bytes;
    for (const std::string& line : report.damage) {
      add_fault(ExitCode::bad_data, line);
    }
    for (const std::string& line : report.extras) {
      add_fault(ExitCode::bad_data,
                fmt::format("{} was added: the manifest does not name it", line));
    }
    if (manifest.tokenizer != "bytes") {
      (void)open_tokenizer_of(path, manifest);
    }
  };
  try {
    check();
  } catch (const Error& error) {
    add_fault(error.exit_code(), error.what());
  }
  add_unsigned(
      fmt::format("{} has no {}: the files from which it was packed are unknown and were not "
                  "checked",
                  path.string(), kProvenanceName));
}

void LineageWalk::program(const Material& material, int depth) {
  const fs::path path = place_of(material);
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(depth, material.name, path.string());
  std::error_code code;
  const FileDigest digest = fs::exists(path, code) ? digest_file(path) : FileDigest{};
  lineage.bytes += digest.bytes;
  if (digest.sha256 != material.sha256) {
    add_fault(ExitCode::not_found,
              fmt::format("the program {} with the SHA-256 {} is gone{}", path.string(),
                          material.sha256, digest.sha256.empty() ? "" : ": another one is there"));
  } else {
    ++lineage.files;
  }
  end_item(item, first, digest.sha256 == material.sha256 ? "as signed" : "gone");
}

// The bill of materials of the process that has saved the checkpoint.
void LineageWalk::bill(const Material& material, int depth) {
  const fs::path path = place_of(material);
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(depth, material.name, path.string());
  std::error_code code;
  const FileDigest digest = fs::exists(path, code) ? digest_file(path) : FileDigest{};
  lineage.bytes += digest.bytes;
  if (digest.sha256 == material.sha256) {
    ++lineage.files;
  } else if (digest.sha256.empty()) {
    add_fault(ExitCode::not_found, fmt::format("the bill of materials {} is gone", path.string()));
  } else {
    add_fault(ExitCode::bad_data,
              fmt::format("the bill of materials {} was changed: its SHA-256 is {}, and the "
                          "provenance states {}",
                          path.string(), digest.sha256, material.sha256));
  }
  end_item(item, first, digest.sha256 == material.sha256 ? "as signed" : "not as signed");
}

// The configuration is in the statement itself: the file is written anew by each start.
void LineageWalk::configuration(const Material& material, const Provenance& provenance, int depth) {
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(depth, material.name, place_of(material).string());
  const nlohmann::json& parameters = *provenance.parameters;
  const bool is_text = parameters.contains("config") && parameters["config"].is_string();
  if (!is_text || sha256_hex(parameters["config"].get<std::string>()) != material.sha256) {
    add_fault(ExitCode::bad_data,
              "the configuration in the provenance does not have the digest that it states");
  }
  end_item(item, first, "in the provenance");
}

void LineageWalk::inputs(const std::vector<const Material*>& materials, int depth) {
  const std::size_t first = lineage.faults.size();
  const std::size_t item = lineage.items.size();
  add_item(depth, "inputs", counted(static_cast<std::int64_t>(materials.size()), "file"));
  std::vector<fs::path> paths;
  std::vector<const Material*> wanted;
  std::vector<std::string> gone;
  std::vector<std::string> changed;
  for (const Material* material : materials) {
    const fs::path path = place_of(*material);
    std::error_code code;
    if (fs::exists(path, code)) {
      paths.push_back(path);
      wanted.push_back(material);
    } else {
      gone.push_back(path.string());
    }
  }
  const std::vector<FileDigest> digests = digest_files(paths, options_.threads);
  std::int64_t same = 0;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    lineage.bytes += digests[i].bytes;
    if (digests[i].sha256 == wanted[i]->sha256) {
      ++same;
    } else if (digests[i].sha256.empty()) {
      add_fault(digests[i].code, digests[i].trouble);
    } else {
      changed.push_back(paths[i].string());
    }
  }
  lineage.files += same;
  const auto report = [&](ExitCode code, const std::vector<std::string>& names, const char* what) {
    for (std::size_t i = 0; i < std::min(names.size(), kMostNamedInputs); ++i) {
      add_fault(code, fmt::format("the input file {} {}", names[i], what));
    }
    if (names.size() > kMostNamedInputs) {
      add_fault(code,
                fmt::format("and {} more input files: the same", names.size() - kMostNamedInputs));
    }
  };
  report(ExitCode::bad_data, changed, "was changed since it was read");
  report(ExitCode::not_found, gone, "is gone");
  end_item(item, first,
           fmt::format("{} as signed, {} changed, {} gone", same, changed.size(), gone.size()));
}

}  // namespace trireme
