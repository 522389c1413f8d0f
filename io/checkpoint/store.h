// Reads the checkpoint folder as a whole: which steps it holds, which of them are whole, and which
// may be deleted.
//
// "Newest" means the largest step of the latest run (generation) that has committed one. If a run
// went back to step 100 and is now at 110, its step 110 is newer than step 150 of the run before.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.h"
#include "io/checkpoint/types.h"
#include "src/base/error.h"

namespace trireme {

struct StepFolder {
  std::filesystem::path path;
  std::int64_t step = 0;
  // Present if the step is whole: its manifest is valid, all shards are present in full size, and
  // if they are encrypted, keys.json belongs to the manifest. The digests of the shards are
  // compared only when they are read.
  std::optional<Manifest> manifest;
  std::string manifest_sha256;  // of the file from which `manifest` was read; else empty
  std::string problem;          // if not whole, the reason, with the file's name
  // True if this user may not read it, so that it is unknown whether it is whole.
  bool unreadable = false;
  bool pinned = false;
};

// Returns whether the path is the folder of one step rather than of several: it has a manifest, or
// it is named like a step and holds no steps.
bool is_step_folder(const std::filesystem::path& path);
// Returns what the folder of one step holds. If it is not named step-*, it may hold any step.
StepFolder inspect_step(const std::filesystem::path& path);
// Returns all step folders: first those with a problem, sorted by decreasing step, then the whole
// ones, the newest first. Returns none if the folder does not exist.
std::vector<StepFolder> list_steps(const std::filesystem::path& folder);
// Returns the error for a folder that is missing or has no steps. If its subfolder checkpoints
// exists, the text suggests that.
NotFound no_checkpoint_in(const std::filesystem::path& folder);

// Throws PolicyError if the step is unreadable, so that no older one is used instead.
void check_readable(const StepFolder& step);
// Returns the first few problems, and one line with the number of the others: a folder may hold
// 100,000 broken steps.
std::vector<std::string> shortened(std::vector<std::string> problems,
                                   const std::filesystem::path& folder);
// `path` is a step's folder, or a checkpoint folder, which stands for its newest whole step. Sets
// `skipped` to the problems of newer steps, shortened. Throws NotFound if there is no step,
// PolicyError if one is unreadable, and DataError if none is whole.
StepFolder find_step(const std::filesystem::path& path, std::vector<std::string>& skipped);
// As find_step(), but returns all whole steps, the newest first, and does not shorten `skipped`.
std::vector<StepFolder> find_steps(const std::filesystem::path& path,
                                   std::vector<std::string>& skipped);
// Returns the error for a folder whose steps all have problems. `problems` are not shortened.
DataError no_valid_checkpoint_in(const std::filesystem::path& folder,
                                 std::vector<std::string> problems);
// Returns what a message advises about a damaged step, whose folder is `path`.
std::string advice_on_damage(const std::filesystem::path& path);

// StepIdentity names one save of a step: a later generation may have saved the same step again.
struct StepIdentity {
  std::int64_t step = 0;
  std::int64_t generation = 0;
  friend bool operator==(const StepIdentity&, const StepIdentity&) = default;
};

struct Retention {
  std::int64_t keep = 3;        // number of newest steps to keep; at least 2
  std::int64_t keep_every = 0;  // also keeps steps divisible by it; 0 means none
  // If set, only steps divisible by it count towards `keep`, since a run may have to rewind to
  // them. Other steps, such as those saved at a stop, are deleted as soon as there is a newer one.
  // 0 means that all steps count.
  std::int64_t counts_every = 0;
  std::vector<StepIdentity> damaged = {};  // steps whose contents were found damaged
};

// Returns the paths that may be deleted, given a list from list_steps(). Only whole steps that were
// read back and not found damaged count towards `keep`. Pinned steps, symbolic links, damaged steps
// and those listed in the newest manifest (keep_steps.h) are never deleted.
std::vector<std::filesystem::path> plan_retention(const std::vector<StepFolder>& steps,
                                                  const Retention& retention);
// Deletes a step. First its name is removed, then the manifest, then the data, so that a crash
// leaves nothing that looks like a checkpoint.
void delete_step(const std::filesystem::path& path, std::int64_t generation);
// The two halves of delete_step(): the first removes the name and returns where the step is now,
// and the second deletes that.
std::filesystem::path take_step_away(const std::filesystem::path& path, std::int64_t generation);
void remove_trash(const std::filesystem::path& trash);
// Returns whether the file is a leftover draft of one of the small files. Matches exactly the names
// that write_file_durably() (LATEST.tmp-PID) and the run lock (run.lock.NONCE,
// run.lock.stale-NONCE) use, so that a user's LATEST.notes stays.
bool is_draft(const std::filesystem::path& path);
// Cleans up after earlier generations: deletes attempts and trash, and moves a replaced step back
// unless a new one took its place. The caller holds the run lock.
void clean_remains(const std::filesystem::path& folder, std::int64_t generation);

}  // namespace trireme
