// `trireme data pack|info|verify|stage|convert`: makes and checks sharded HDF5 datasets. pack,
// verify, stage and convert share their work among the ranks of mpirun or srun.
#pragma once

#include <functional>

#include "mpi/communicator.h"
#include "src/app/command_line.h"

namespace trireme {

// The job's communicator; MPI starts at the first call.
using CommunicatorAccess = std::function<Communicator&()>;

// exit_code: set where a command ends with something to report that is no exception (verify).
void add_data_command(CommandLine& app, const CommunicatorAccess& communicator, int& exit_code);

}  // namespace trireme
