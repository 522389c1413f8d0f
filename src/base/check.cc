#include "src/base/check.h"

#include <fmt/core.h>

#include "src/base/error.h"

namespace trireme {

void invariant_broken(const char* what, const char* file, int line) {
  throw InternalError(
      fmt::format("{}:{}: invariant broken: {} (this is a bug in trireme: please report it with "
                  "the command that you ran)",
                  file, line, what));
}

}  // namespace trireme
