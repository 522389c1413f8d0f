// check(): states an invariant of the program, in every build. Never for what a user may get wrong.
#pragma once

#include <string>

#include "src/base/error.h"

namespace trireme {

inline void check(bool holds, const char* what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) {
    throw InternalError(fmt::format("{}:{}: invariant broken: {} (a defect of trireme: please "
                                    "report it with the command that led here)",
                                    file, line, what));
  }
}

}  // namespace trireme
