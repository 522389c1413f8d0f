#include "mpi/session/mpi_check.h"

#include <array>
#include <string>

#include <mpi.h>

#include "src/base/error.h"

namespace trireme {

void mpi_check(int code, std::string_view call) {
  if (code == MPI_SUCCESS) {
    return;
  }
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) {
    length = 0;
  }
  throw CommError(fmt::format("{} failed: {}", call,
                              length > 0
                                  ? std::string(text.data(), static_cast<std::size_t>(length))
                                  : fmt::format("unknown MPI error {}", code)));
}

}  // namespace trireme
