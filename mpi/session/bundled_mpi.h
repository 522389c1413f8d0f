// A bundle (docs/install.md) holds Open MPI, PMIx and UCX beside the program, wherever it was
// unpacked. These libraries look for their plugins in the folders they were built for; this points
// them to those of the bundle.
#pragma once

#include <filesystem>

namespace trireme {

// Returns the folder of the bundle that `program` belongs to, or an empty path.
std::filesystem::path bundle_of(const std::filesystem::path& program);

// Sets the environment of this process and its children if the program runs from a bundle. Call it
// before MPI starts and before any thread exists.
void use_bundled_mpi();

}  // namespace trireme
