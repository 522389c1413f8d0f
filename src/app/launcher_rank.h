// The rank that mpirun or srun gave this process, before MPI is started; 0 without a launcher.
#pragma once

namespace trireme {

int rank_before_start();

}  // namespace trireme
