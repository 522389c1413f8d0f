// Checks the users' settings for MPI's fabric before MPI starts. If this host lacks what is set,
// MPI itself would end the process with a message that names no variable.
#pragma once

#include "mpi/launch_environment.h"

namespace trireme {

// Throws ConfigError, saying what to set instead, if OMPI_MCA_pml=ucx finds nothing of what UCX_TLS
// and UCX_NET_DEVICES name, or OMPI_MCA_btl_tcp_if_include names no interface of this host.
void check_fabric_settings(const EnvironmentLookup& environment);

}  // namespace trireme
