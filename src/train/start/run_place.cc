#include "src/train/start/run_place.h"

#include <string_view>

#include "io/checkpoint/names.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns what a folder is if other runs or commands remove it or only read it, otherwise "".
std::string_view use_of(const fs::path& folder) {
  std::error_code none;
  const bool has_manifest = fs::exists(folder / kManifestName, none);
  // A name of a step is reserved even before the step is saved.
  if (parse_step_folder_name(folder.filename().string()) &&
      (has_manifest || fs::exists(folder.parent_path() / kGenerationName, none))) {
    return "a checkpoint";
  }
  return has_manifest && fs::exists(folder / "shards", none) ? "a dataset" : "";
}

// Throws ConfigError if the folder or one above it has a use. key: what has named the folder.
void check_place(std::string_view key, const fs::path& named, const fs::path& from,
                 bool beside_checkpoints) {
  std::error_code none;
  for (fs::path at = from; at.has_relative_path(); at = at.parent_path()) {
    std::string_view use = use_of(at);
    if (use.empty() && !beside_checkpoints && fs::exists(at / kGenerationName, none)) {
      use = "a folder of checkpoints";
    }
    if (!use.empty()) {
      throw ConfigError(fmt::format(
          "{}: {} lies in {}, which is {} and may be removed with everything in it: choose another "
          "path",
          key, named.string(), at.string(), use));
    }
  }
}

fs::path canonical_place(const fs::path& folder) {
  std::error_code none;
  const fs::path place = fs::weakly_canonical(fs::absolute(folder, none), none);
  return place.has_filename() ? place : place.parent_path();
}

}  // namespace

void check_place_of_run(const RunConfig& config) {
  const fs::path checkpoints = config.checkpoint_dir();
  check_place("run.dir", config.run_dir, canonical_place(config.run_dir), true);
  check_place("checkpoint.dir", checkpoints, canonical_place(checkpoints), true);
}

void check_place_of_dataset(const fs::path& folder) {
  check_place("--out", folder, canonical_place(folder).parent_path(), false);
}

}  // namespace trireme
