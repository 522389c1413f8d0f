#include "src/app/access/folder_access.h"

#include <algorithm>
#include <functional>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/data/pack_folder.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

bool needs_no_contents(Deed deed) { return deed == Deed::write || deed == Deed::keys; }

void check_unknown(const Access& access, Deed deed, Thing thing, const fs::path& folder) {
  access.check({deed, thing, folder, kUnlabelled, needs_no_contents(deed)});
}

bool holds_file(const fs::path& folder, const std::function<bool(const std::string&)>& is_sought) {
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    if (is_sought(at->path().filename().string())) {
      return true;
    }
  }
  return false;
}

// Returns whether the folder has shards of a dataset, plain or encrypted.
bool holds_dataset_shards(const fs::path& folder) {
  return holds_file(folder / kShardsFolder, [](const std::string& name) {
    return name.ends_with(".h5") || name.ends_with(".h5.sealed");
  });
}

bool holds_checkpoint_shards(const fs::path& folder) {
  return holds_file(
      folder, [](const std::string& name) { return parse_shard_file_name(name).has_value(); });
}

// Checks a folder that is_dataset_folder() or is_step_folder() describes. A rule of the policy is
// about datasets or about checkpoints, so the manifest alone, which whoever may write to the folder
// can change, must not decide which of them this is: the shards have a say.
void check_one_folder(const Access& access, Deed deed, const fs::path& folder) {
  const StepFolder step = inspect_step(folder);
  const bool is_dataset = is_dataset_folder(folder) || holds_dataset_shards(folder);
  const bool is_checkpoint = step.manifest || holds_checkpoint_shards(folder);
  if (is_dataset && is_checkpoint) {
    throw PolicyError(fmt::format(
        "{} has a manifest or shards of a dataset and of a checkpoint, so that no rule of the "
        "policy can be applied: move what does not belong there elsewhere",
        printable(folder.string())));
  }
  if (is_dataset) {
    check_dataset_access(access, deed, folder);
  } else if (is_checkpoint || folder.filename().string().starts_with("step-")) {
    check_access(access, deed, step);
  } else {
    throw PolicyError(
        fmt::format("{} has a {} but no shards, and it is unclear whether it is a dataset or a "
                    "checkpoint, so that no rule of the policy can be applied",
                    printable(folder.string()), kManifestName));
  }
}

// Returns the folders in a folder, sorted, without symbolic links.
std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
    if (entry.is_directory(code) && !entry.is_symlink(code)) {
      folders.push_back(entry.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace

void check_access(const Access& access, Deed deed, const fs::path& folder,
                  const DatasetManifest& manifest) {
  access.check({deed, Thing::dataset, folder, manifest.label});
}

void check_access(const Access& access, Deed deed, const StepFolder& step) {
  if (step.manifest) {
    access.check({deed, Thing::checkpoint, step.path, step.manifest->meta.label});
  } else {
    check_unknown(access, deed, Thing::checkpoint, step.path);
  }
}

void check_dataset_access(const Access& access, Deed deed, const fs::path& folder) {
  if (!access.has_policy()) {
    return;
  }
  std::optional<DatasetManifest> manifest;
  try {
    manifest = parse_dataset_manifest(read_manifest_text(folder),
                                      (folder / kDatasetManifestName).string());
  } catch (const DataError&) {
    if (!needs_no_contents(deed)) {
      throw;
    }
  } catch (const NotFound&) {
    return;  // the command says so
  }
  if (manifest) {
    check_access(access, deed, folder, *manifest);
  } else {
    check_unknown(access, deed, Thing::dataset, folder);
  }
}

void check_folder_access(const Access& access, Deed deed, const fs::path& given) {
  std::error_code code;
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  if (!access.has_policy() || !fs::is_directory(folder, code)) {
    return;
  }
  if (is_dataset_folder(folder) || is_step_folder(folder) || holds_dataset_shards(folder)) {
    check_one_folder(access, deed, folder);
    return;
  }
  const fs::path of_run = folder / "checkpoints";
  for (const fs::path& place : {folder, of_run}) {
    for (const StepFolder& step : list_steps(place)) {
      check_access(access, deed, step);
    }
  }
  for (const fs::path& each : folders_in(folder)) {
    const bool is_listed = each.filename().string().starts_with("step-");
    const bool has_manifest = fs::exists(fs::symlink_status(each / kManifestName, code));
    if (is_dataset_folder(each) || holds_dataset_shards(each) || (has_manifest && !is_listed)) {
      check_one_folder(access, deed, each);
    }
  }
}

void check_output_access(const Access& access, Thing thing, const fs::path& folder,
                         const std::optional<Label>& label) {
  access.check({Deed::write, thing, folder, label});
}

void check_logs_access(const Access& access, Deed deed, const fs::path& folder,
                       const std::string& label) {
  if (!access.has_policy()) {
    return;
  }
  const std::optional<Label> own =
      label.empty() ? kUnlabelled : label_of(nlohmann::json{{"label", parse_json(label)}});
  access.check({deed, Thing::checkpoint, folder, own, !own && needs_no_contents(deed)});
  if (!own) {
    check_folder_access(access, deed, folder);
  }
}

KeyOptions with_access(KeyOptions options, const Access& access) {
  options.admit = [&access](const Manifest& manifest, const fs::path& folder) {
    access.check({Deed::read, Thing::checkpoint, folder, manifest.meta.label});
  };
  return options;
}

}  // namespace trireme
