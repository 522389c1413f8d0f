#include "mpi/session/hang_up.h"

#include <csignal>
#include <cstdlib>

#include <dlfcn.h>

namespace trireme {

void take_hang_up_from_ucx() {
  constexpr const char* kVariable = "UCX_DEBUG_SIGNO";
  if (std::getenv(kVariable) != nullptr) {  // before any thread
    return;
  }
  ::setenv(kVariable, "0", 1);  // before any thread
  // UCX may be a part of the program, or be loaded by MPI later.
  using DisableSignal = void (*)(int);
  if (void* const loaded = ::dlsym(RTLD_DEFAULT, "ucs_debug_disable_signal"); loaded != nullptr) {
    reinterpret_cast<DisableSignal>(loaded)(SIGHUP);
  }
}

}  // namespace trireme
