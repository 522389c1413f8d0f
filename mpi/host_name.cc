#include "mpi/host_name.h"

#include <array>

#include <unistd.h>

namespace trireme {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) {
    return "unknown-host";
  }
  return name.data();
}

}  // namespace trireme
