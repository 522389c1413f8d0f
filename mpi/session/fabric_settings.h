// What users set to choose MPI's fabric, looked at before MPI starts: where this host lacks what is
// set, MPI ends the process in its own words, which name no variable.
#pragma once

#include "mpi/launch_environment.h"

namespace trireme {

// ConfigError, with what to set instead, where OMPI_MCA_pml=ucx finds nothing to use of what
// UCX_TLS and UCX_NET_DEVICES name, or OMPI_MCA_btl_tcp_if_include names no interface of this host.
void check_fabric_settings(const EnvironmentLookup& environment);

}  // namespace trireme
