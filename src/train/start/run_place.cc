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

}  // namespace

void check_place_of_run(const fs::path& run_dir) {
  std::error_code none;
  const fs::path place = fs::weakly_canonical(fs::absolute(run_dir, none), none);
  for (fs::path at = place; at.has_relative_path(); at = at.parent_path()) {
    const std::string_view use = use_of(at);
    if (!use.empty()) {
      throw ConfigError(fmt::format(
          "run.dir: {} lies in {}, which is {} and may be removed with everything in it: choose "
          "another path",
          run_dir.string(), at.string(), use));
    }
  }
}

}  // namespace trireme
