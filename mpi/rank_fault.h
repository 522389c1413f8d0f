// RankFault is a fault of one rank, or of the first of several. The code that ends the process
// writes that rank and its host into exit_reason.json, so that a launcher excludes the right node.
#pragma once

#include "src/base/error.h"

namespace trireme {

struct RankFault : DeviceError {
  RankFault(const std::string& what, int the_rank) : DeviceError(what), rank(the_rank) {}
  int rank;  // rank in the world
};

}  // namespace trireme
