#include "src/train/start/run_place.h"

#include <string_view>

#include "io/checkpoint/names.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns what a folder above a run's is, if it must not be there.
std::string_view use_of(const fs::path& folder) {
  std::error_code none;
  if (fs::exists(folder / "manifest.json", none)) {
    if (parse_step_folder_name(folder.filename().string())) {
      return "a checkpoint";
    }
    if (fs::exists(folder / "shards", none)) {
      return "a dataset";
    }
  }
  return fs::exists(folder / kGenerationName, none) ? "a folder of checkpoints" : "";
}

}  // namespace

void check_place_of_run(const fs::path& run_dir) {
  std::error_code none;
  const fs::path place = fs::weakly_canonical(run_dir, none);
  for (fs::path at = place; at.has_relative_path(); at = at.parent_path()) {
    const std::string_view use = use_of(at);
    if (!use.empty() && !(at == place && fs::exists(at / kGenerationName, none))) {
      throw ConfigError(fmt::format(
          "run.dir: {} lies in {}, which is {} and may be removed with everything in it: choose "
          "another path",
          run_dir.string(), at.string(), use));
    }
  }
}

}  // namespace trireme
