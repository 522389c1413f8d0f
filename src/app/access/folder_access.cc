#include "src/app/access/folder_access.h"

#include <algorithm>
#include <vector>

#include "io/checkpoint/names.h"
#include "src/base/error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

bool needs_no_contents(Deed deed) { return deed == Deed::write || deed == Deed::keys; }

void check_unknown(const Access& access, Deed deed, Thing thing, const fs::path& folder) {
  access.check({deed, thing, folder, kUnlabelled, needs_no_contents(deed)});
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
  if (is_dataset_folder(folder)) {
    check_dataset_access(access, deed, folder);
    return;
  }
  if (is_step_folder(folder)) {
    check_access(access, deed, inspect_step(folder));
    return;
  }
  const fs::path of_run = folder / "checkpoints";
  for (const fs::path& place : {folder, of_run}) {
    for (const StepFolder& step : list_steps(place)) {
      check_access(access, deed, step);
    }
  }
  for (const fs::path& each : folders_in(folder)) {
    if (is_dataset_folder(each)) {
      check_dataset_access(access, deed, each);
    }
  }
}

void check_output_access(const Access& access, Thing thing, const fs::path& folder,
                         const std::optional<Label>& label) {
  access.check({Deed::write, thing, folder, label});
}

KeyOptions with_access(KeyOptions options, const Access& access) {
  options.admit = [&access](const Manifest& manifest, const fs::path& folder) {
    access.check({Deed::read, Thing::checkpoint, folder, manifest.meta.label});
  };
  return options;
}

}  // namespace trireme
