// check(): states an invariant of the program, in every build. Never for what a user may get wrong.
#pragma once

#include <string>

#include "src/base/error.h"

namespace trireme {

// Throws the InternalError that names the invariant and the place.
[[noreturn]] void invariant_broken(const char* what, const char* file, int line);

inline void check(bool holds, const char* what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) {
    invariant_broken(what, file, line);
  }
}

}  // namespace trireme
