#include "io/data/dataset_list.h"

#include <algorithm>

#include "io/data/dataset.h"
#include "io/data/dataset_keys.h"
#include "io/data/pack_folder.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

constexpr int kMostLevels = 8;

// Returns whether the folder looks like a dataset. A checkpoint also has a manifest.json, but no
// shards/.
bool is_candidate(const fs::path& folder) {
  std::error_code none;
  return fs::is_directory(folder / kShardsFolder, none) &&
         (fs::exists(folder / kDatasetManifestName, none) ||
          fs::is_directory(folder / kNotesFolder, none));
}

FoundDataset look_at(const fs::path& folder) {
  FoundDataset found{folder, {}, {}};
  std::error_code none;
  if (!fs::exists(folder / kDatasetManifestName, none)) {
    found.problem = "unfinished: run the same pack or convert command again";
    return found;
  }
  try {
    DatasetManifest manifest = Dataset::open(folder).manifest();
    if (manifest.is_encrypted()) {
      (void)read_dataset_keys(folder, manifest);
    }
    found.manifest = std::move(manifest);
  } catch (const Error& error) {
    found.problem = error.what();
  }
  return found;
}

void walk(const fs::path& folder, int levels, std::vector<FoundDataset>& found) {
  if (is_candidate(folder)) {
    found.push_back(look_at(folder));
    return;
  }
  std::error_code code;
  if (fs::directory_iterator(folder, code); code && code != std::errc::no_such_file_or_directory) {
    found.push_back({folder, {}, fmt::format("cannot be read: {}", code.message())});
    return;
  }
  for (auto at = fs::directory_iterator(folder, code); !code && at != fs::directory_iterator();
       at.increment(code)) {
    const std::string name = at->path().filename();
    std::error_code gone;
    if (levels > 0 && !name.starts_with('.') && fs::is_directory(at->symlink_status(gone))) {
      walk(at->path(), levels - 1, found);
    }
  }
}

}  // namespace

std::vector<FoundDataset> list_datasets(const fs::path& folder) {
  std::error_code code;
  fs::directory_iterator readable(folder, code);
  if (code) {
    throw_errno(code.value(), "list", folder);
  }
  std::vector<FoundDataset> found;
  walk(folder, kMostLevels, found);
  std::ranges::sort(found, {}, &FoundDataset::folder);
  return found;
}

}  // namespace trireme
