// Returns the MPI session of a test program that runs under mpirun (mpi_main.cc). Its world
// contains all ranks.
#pragma once

#include "mpi/session/mpi_session.h"

namespace trireme {

MpiSession& test_session();

}  // namespace trireme
