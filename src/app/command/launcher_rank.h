// Returns the rank that mpirun or srun has given to this process, before MPI starts; 0 without a
// launcher.
#pragma once

namespace trireme {

int rank_before_start();

}  // namespace trireme
