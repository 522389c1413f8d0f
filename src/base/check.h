// check() states an invariant of the program, in every build. It is never used for a user's
// mistakes. Sources for CUDA devices include this header, so it must not include fmt.
#pragma once

namespace trireme {

// Throws InternalError that names the invariant and its place in the source.
[[noreturn]] void invariant_broken(const char* what, const char* file, int line);

inline void check(bool holds, const char* what, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (!holds) {
    invariant_broken(what, file, line);
  }
}

}  // namespace trireme
