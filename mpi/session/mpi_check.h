// The one door for MPI's return codes.
#pragma once

#include <string_view>

namespace trireme {

// CommError with MPI's own text unless `code` is MPI_SUCCESS. `call` names the function.
void mpi_check(int code, std::string_view call);

}  // namespace trireme
