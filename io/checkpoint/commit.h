// The commit turns the shards in an attempt's folder into a checkpoint under its own name. It runs
// on rank 0 in the background and does not use MPI.
//
//   1. check that every shard is present in    4. set an existing step of that number aside
//      full size                               5. rename to step-NNNNNNNN, fsync the parent
//   2. the wrapped key and the provenance,      6. write LATEST; delete what was set aside
//      if any, and then manifest.json: create,
//      write, fsync; fsync the folder
//   3. check that the lock is still ours
//
// A crash before 5 leaves an attempt, which is never read; a crash after 5 leaves the checkpoint.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/run_lock.h"
#include "src/keys/folder_key.h"

namespace trireme {

// Returns the contents of the provenance for a manifest with this text.
using MakeProvenance = std::function<std::string(const Manifest&, std::string_view text)>;

struct CommitPlan {
  std::filesystem::path folder;   // the checkpoint folder
  std::filesystem::path attempt;  // the attempt's folder, within `folder`
  Manifest manifest;
  MakeProvenance provenance = {};             // may be empty
  std::shared_ptr<const FolderKey> key = {};  // encrypts the shards; null if they are not encrypted
};

// Returns a warning if something failed after the checkpoint was safe, else "". Throws if the step
// could not be committed.
std::string commit(const CommitPlan& plan, const RunLock& lock);

}  // namespace trireme
