// RankFault is a fault of one rank, or of the first of several. The code that ends the process
// writes that rank and its host into exit_reason.json, so that a launcher knows the node.
#pragma once

#include <string>
#include <string_view>

#include "src/base/error.h"

namespace trireme {

struct RankFault : DeviceError {
  // kind: "device", or "memory" if a node is not to be blamed (ResourceError).
  RankFault(const std::string& what, int the_rank, std::string_view kind = "device")
      : DeviceError(kind, what), rank(the_rank) {}
  int rank;  // rank in the world
};

}  // namespace trireme
