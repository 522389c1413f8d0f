// The checkpoint folder as a whole: which steps it holds, which are whole, and which may go.
//
// Newest means: of the latest run (generation) that committed one, and within it of the largest
// step. A run that went back to step 100 and now stands at 110 is newer than step 150 of the run
// before.
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
  // Present if the step is whole: a good manifest of this step, and every shard there in full size.
  // The digests of the shards are compared when they are read.
  std::optional<Manifest> manifest;
  std::string problem;      // else: why not, with the file's name
  bool unreadable = false;  // for want of permission: nobody knows whether it is whole
  bool pinned = false;
};

// Whether the path means one step, not a folder of them: it has a manifest, or the name of a step
// and no steps in it.
bool is_step_folder(const std::filesystem::path& path);
// A folder of any other name than step-* may hold any step.
StepFolder inspect_step(const std::filesystem::path& path);
// All step folders: first those with a problem, the largest step first; then the whole ones, the
// newest first. An absent folder holds none.
std::vector<StepFolder> list_steps(const std::filesystem::path& folder);
// The error for a folder without any; of a run's folder it says where they are.
NotFound no_checkpoint_in(const std::filesystem::path& folder);

// PolicyError for an unreadable step: it is not passed over for an older one.
void check_readable(const StepFolder& step);
// The first few, and in one line how many more there are: a folder may hold 100,000 broken steps.
std::vector<std::string> shortened(std::vector<std::string> problems,
                                   const std::filesystem::path& folder);
// `path` is a step's folder, or a checkpoint folder and then means its newest whole step. Puts
// into `skipped` what is wrong with newer ones, shortened. NotFound if there is no step,
// PolicyError if one is unreadable, DataError if none is whole.
StepFolder find_step(const std::filesystem::path& path, std::vector<std::string>& skipped);

struct Retention {
  std::int64_t keep = 3;        // the newest so many; at least 2
  std::int64_t keep_every = 0;  // and steps divisible by it; 0: none
  // Only steps divisible by it count as kept: a run may have to go back to those. Others, which
  // stops have left, go as soon as there is a newer step. 0: all count.
  std::int64_t counts_every = 0;
};

// Of a list as list_steps() makes it, the paths that may be deleted. Only whole steps that were
// read back count as kept; pinned ones, symbolic links and damaged ones are left alone.
std::vector<std::filesystem::path> plan_retention(const std::vector<StepFolder>& steps,
                                                  const Retention& retention);
// Deletes a step: first the name goes, then the manifest, then the data, so that a crash leaves
// nothing that looks like a checkpoint.
void delete_step(const std::filesystem::path& path, std::int64_t generation);
// Its two halves: takes the name away, and returns where the step is now; removes that.
std::filesystem::path take_step_away(const std::filesystem::path& path, std::int64_t generation);
void remove_trash(const std::filesystem::path& trash);
// Ends what earlier generations left half done: deletes attempts and trash, puts a replaced step
// back if nothing took its place. The caller holds the run lock.
void clean_remains(const std::filesystem::path& folder, std::int64_t generation);

}  // namespace trireme
