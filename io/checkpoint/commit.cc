#include "io/checkpoint/commit.h"

#include <cstdio>
#include <system_error>

#include <fcntl.h>

#include "io/checkpoint/names.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/file.h"
#include "src/base/file_kind.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

void check_presence(const CommitPlan& plan) {
  for (const StoredShard& shard : plan.manifest.shards) {
    std::error_code code;
    const auto bytes = fs::file_size(plan.attempt / shard.file, code);
    if (code || static_cast<std::int64_t>(bytes) != shard.bytes) {
      throw IoError(
          fmt::format("rank 0 does not see {} with the size that was written: the checkpoint "
                      "folder must be on a file system that all nodes share",
                      (plan.attempt / shard.file).string()));
    }
  }
}

void write_new(const fs::path& path, const std::string& text) {
  File file = File::create_new(path);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
  file.sync();
  file.close();
}

void write_manifest(const CommitPlan& plan) {
  fault("ckpt.manifest_write");
  const std::string text = to_text(plan.manifest);
  // Never commit a manifest that can't be read back.
  const Manifest read = parse_manifest(text, "the new manifest");
  if (plan.key != nullptr) {
    write_new(plan.attempt / kKeysFileName, keys_text(*plan.key, read.seal));
    fault("ckpt.keys_written");
  }
  if (plan.provenance) {
    write_new(plan.attempt / kProvenanceName, plan.provenance(plan.manifest, text));
    fault("ckpt.provenance_written");
  }
  write_new(plan.attempt / kManifestName, text);
  fault("ckpt.manifest_written");
  sync_directory(plan.attempt);
  fault("ckpt.directory_synced");
}

// Returns the path to which an existing step was moved, or "" if there was none.
fs::path set_aside(const CommitPlan& plan, const fs::path& place) {
  if (!fs::exists(fs::symlink_status(place))) {
    return {};
  }
  const TransientName name{TransientName::Kind::replaced, plan.manifest.meta.step,
                           plan.manifest.generation};
  remove_tree(plan.folder / name.to_string());
  rename_durably(place, plan.folder / name.to_string());
  return plan.folder / name.to_string();
}

}  // namespace

std::string commit(const CommitPlan& plan, const RunLock& lock) {
  check_presence(plan);
  write_manifest(plan);
  fault("ckpt.fence");
  lock.check_still_mine();
  const std::string name = step_folder_name(plan.manifest.meta.step);
  const fs::path replaced = set_aside(plan, plan.folder / name);
  fault("ckpt.rename");
  try {
    rename_durably(plan.attempt, plan.folder / name);
  } catch (const Error&) {
    if (!replaced.empty()) {  // restore the older step, which was good
      (void)::renameat2(AT_FDCWD, replaced.c_str(), AT_FDCWD, (plan.folder / name).c_str(),
                        RENAME_NOREPLACE);
    }
    throw;
  }
  fault("ckpt.renamed");
  try {
    const fs::path latest = plan.folder / kLatestName;
    if (other_than_file(latest) == "a symbolic link") {  // somebody's, to the newest step perhaps
      std::error_code ignored;
      fs::remove(latest, ignored);
    }
    write_file_durably(latest, name + "\n");
    fault("ckpt.latest_written");
    if (!replaced.empty()) {
      remove_tree(replaced);
    }
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace trireme
