#include "src/lineage/lineage.h"

#include <algorithm>
#include <array>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "io/data/dataset_manifest.h"
#include "src/base/run_text.h"
#include "src/evidence/digest_list.h"
#include "src/evidence/model_signature.h"
#include "src/lineage/lineage_walk.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns the absolute path without "." and a slash at the end, so that its last name is that of
// the folder. Only the file system knows what ".." means after a symbolic link.
fs::path plain_path(const fs::path& path) {
  const fs::path absolute = fs::absolute(path);
  const bool goes_up = std::find(absolute.begin(), absolute.end(), "..") != absolute.end();
  const fs::path plain = goes_up ? without_links(absolute) : absolute.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();
}

bool is_signed_or_step(const fs::path& folder) {
  std::error_code code;
  return parse_step_folder_name(folder.filename().string()) ||
         fs::exists(fs::symlink_status(folder / kManifestName, code)) ||
         fs::exists(fs::symlink_status(folder / kProvenanceName, code));
}

// Returns whether the folder holds weights as an export writes them, and no steps.
bool looks_like_export(const fs::path& folder) {
  constexpr std::array<std::string_view, 4> kEnds = {".safetensors", ".gguf", ".onnx", ".pbtxt"};
  bool has_weights = false;
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code)) {
    const fs::path& path = at->path();
    if (parse_step_folder_name(path.filename().string())) {
      return false;
    }
    has_weights = has_weights ||
                  std::find(kEnds.begin(), kEnds.end(), path.extension().string()) != kEnds.end();
  }
  return has_weights;
}

}  // namespace

ExitCode Lineage::code() const {
  ExitCode worst = ExitCode::ok;
  for (const EvidenceFault& fault : faults) {
    worst = worse_of(worst, fault.code);
  }
  return worst;
}

Lineage walk_lineage(const fs::path& what, LineageOptions options) {
  const fs::path folder = plain_path(what);
  LineageWalk walk(std::move(options));
  walk.audit_logs(folder);
  if (fs::is_regular_file(folder) && may_be_digest_list(folder)) {
    walk.digest_list(folder);
    return std::move(walk.lineage);
  }
  if (!fs::is_directory(folder)) {
    throw NotFound(
        fmt::format("{} is neither a folder nor a list: name a run, a checkpoint, a "
                    "folder of checkpoints, a dataset, an exported model or a list of digests",
                    what.string()));
  }
  const auto only_step = [&](const fs::path& path) {
    if (!walk.step(path, 0, "checkpoint")) {
      throw NotFound(fmt::format("{} was deleted during this check", path.string()));
    }
  };
  // A folder `checkpoints` that somebody has put into a step or a dataset must not hide it.
  std::error_code code;
  if (is_dataset_folder(folder)) {
    walk.dataset(folder, 0, "dataset");
  } else if (is_signed_or_step(folder)) {
    only_step(folder);
  } else if (fs::exists(fs::symlink_status(folder / kModelSignatureName, code))) {
    walk.model(folder);
  } else if (fs::is_directory(folder / "checkpoints", code) ||
             fs::is_directory(folder / kLogKeysFolder, code)) {
    walk.run(folder);
  } else if (is_step_folder(folder)) {
    only_step(folder);
  } else if (looks_like_export(folder)) {
    throw PolicyError(fmt::format("{} has no {}: the model is not signed (see export --sign)",
                                  folder.string(), kModelSignatureName));
  } else {
    walk.steps_of(folder);
  }
  walk.note_unused_moves();
  return std::move(walk.lineage);
}

}  // namespace trireme
