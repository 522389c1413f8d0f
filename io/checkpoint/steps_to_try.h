// The steps of a checkpoint folder that the ranks try one after the other, until one of them turns
// out to be intact.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

// Collective. Returns the folders of the whole steps in `directory`, the newest first, as rank 0
// finds them: a run may be saving another one meanwhile. A step's folder stands for itself. Sets
// `skipped` on rank 0 to the problems of the others. Throws on all ranks what find_steps() throws.
std::vector<std::filesystem::path> steps_to_try(const std::filesystem::path& directory,
                                                Communicator& world,
                                                std::vector<std::string>& skipped);

}  // namespace trireme
