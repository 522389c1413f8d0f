// GraceWarning warns once if a step and a save take longer than mpirun's delay between Ctrl-C and
// killing the ranks: a request to stop takes effect only at the end of a step. Owned by the
// training loop of rank 0; its thread only.
#pragma once

#include "src/base/log.h"

namespace trireme {

class GraceWarning {
 public:
  // seconds: of a step and a save.
  void compare(double seconds, Log& log);

 private:
  bool warned_ = false;
};

}  // namespace trireme
