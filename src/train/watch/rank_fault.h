// A fault that is one rank's, or the first of several's: who ends the process lets that rank and
// its host stand in exit_reason.json, so that a launcher leaves the right node out.
#pragma once

#include "src/base/error.h"

namespace trireme {

struct RankFault : DeviceError {
  RankFault(const std::string& what, int the_rank) : DeviceError(what), rank(the_rank) {}
  int rank;  // of the world
};

}  // namespace trireme
