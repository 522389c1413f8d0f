// The commit: from shards in an attempt's folder to a checkpoint under its own name. Runs on rank
// 0, in the background; no MPI.
//
//   1. every shard is there in full size           4. a step of that number in the way is set aside
//   2. manifest.json: create, write, fsync;        5. rename to step-NNNNNNNN, fsync the parent
//      fsync the folder                            6. LATEST; delete what was set aside
//   3. the lock is still ours
//
// A crash before 5 leaves an attempt that nobody reads; after it, the checkpoint.
#pragma once

#include <filesystem>
#include <string>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/run_lock.h"

namespace trireme {

struct CommitPlan {
  std::filesystem::path folder;   // the checkpoint folder
  std::filesystem::path attempt;  // within it
  Manifest manifest;
};

// Returns warnings: what failed after the checkpoint was safe. Throws if it is not.
std::string commit(const CommitPlan& plan, const RunLock& lock);

}  // namespace trireme
