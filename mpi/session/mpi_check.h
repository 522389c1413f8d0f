// Converts MPI's return codes to errors. Every MPI call whose result matters goes through it.
#pragma once

#include <string_view>

namespace trireme {

// Throws CommError with MPI's own text unless `code` is MPI_SUCCESS. `call` names the function.
void mpi_check(int code, std::string_view call);

}  // namespace trireme
