#include "src/app/access/output_place.h"

#include <fmt/core.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset_manifest.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Returns "dataset" or "checkpoint", or "" for other folders.
std::string_view kind_of_data(const fs::path& folder) {
  std::error_code none;
  try {
    if (is_dataset_folder(folder)) {
      return "dataset";
    }
    if (fs::exists(folder / kManifestName, none) && inspect_step(folder).manifest) {
      return "checkpoint";
    }
  } catch (const IoError&) {  // a manifest.json that this user may not read
  }
  return "";
}

}  // namespace

void check_in_no_data(std::string_view option, const fs::path& out) {
  std::error_code none;
  const fs::path place = fs::weakly_canonical(fs::absolute(out, none), none);
  for (fs::path above = place.parent_path(); above != above.parent_path();
       above = above.parent_path()) {
    if (const std::string_view kind = kind_of_data(above); !kind.empty()) {
      throw ConfigError(fmt::format("{} {} lies in the {} {}: choose a place outside of it", option,
                                    printable(out.string()), kind, printable(above.string())));
    }
  }
}

}  // namespace trireme
