#include "src/base/check.h"

namespace trireme {

void invariant_broken(const char* what, const char* file, int line) {
  throw InternalError(
      fmt::format("{}:{}: invariant broken: {} (a defect of trireme: please report "
                  "it with the command that led here)",
                  file, line, what));
}

}  // namespace trireme
