// `trireme data pack|info|verify|stage|convert` makes and checks sharded HDF5 datasets. pack,
// verify, stage and convert divide their work among the ranks of mpirun or srun.
#pragma once

#include <functional>

#include "mpi/communicator.h"
#include "src/app/command/command_line.h"
#include "src/policy/access.h"

namespace trireme {

// Returns the job's communicator; the first call starts MPI.
using CommunicatorAccess = std::function<Communicator&()>;

// access: says what the policy of the site allows. exit_code: set by a command that reports a
// problem without an exception (verify).
void add_data_command(CommandLine& app, const CommunicatorAccess& communicator,
                      const AccessSource& access, int& exit_code);

}  // namespace trireme
