// Finds the step that a command uses: the newest of a checkpoint folder whose bytes are intact. In
// all of these functions, `checkpoint` may also be the folder of one step.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "mpi/communicator.h"

namespace trireme {

// Collective. Calls work() with the folder of the newest step. If work() throws DataError on all
// ranks, rank 0 reads the whole step, with its key if it is encrypted, and if that shows damage,
// work() is called again with the next older step. No step is thus read twice unless there is an
// error. keys: those with which work() opens the step. Returns on rank 0 why newer steps were
// skipped, shortened; nothing elsewhere. Throws on all ranks what work() throws for a step that is
// intact or has none older than it.
std::vector<std::string> use_intact_step(
    const std::filesystem::path& checkpoint, Communicator& world, const KeyOptions& keys,
    const std::function<void(const std::filesystem::path& step)>& work);
// The same for commands of one process.
std::vector<std::string> use_intact_step(
    const std::filesystem::path& checkpoint, const KeyOptions& keys,
    const std::function<void(const std::filesystem::path& step)>& work);

// Returns the newest step all bytes of which match their digests, which are read for that; an
// encrypted one is not opened. Sets `skipped` to the faults of newer steps, shortened. Throws what
// find_step() throws, and DataError if no step is intact.
StepFolder find_intact_step(const std::filesystem::path& checkpoint,
                            std::vector<std::string>& skipped);

}  // namespace trireme
