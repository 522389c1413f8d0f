// Finds the step that a command converts: the newest of a checkpoint folder whose bytes are intact.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

// Collective. Calls work() with the folder of the newest step in `checkpoint`, which may also be a
// step's folder. If work() throws DataError on all ranks, rank 0 reads the whole step, and if that
// shows damage, work() is called again with the next older step. No step is thus read twice unless
// there is an error. Returns on rank 0 why newer steps were skipped, shortened; nothing elsewhere.
// Throws on all ranks what work() throws for a step that is intact or has none older than it.
std::vector<std::string> use_intact_step(
    const std::filesystem::path& checkpoint, Communicator& world,
    const std::function<void(const std::filesystem::path& step)>& work);

}  // namespace trireme
