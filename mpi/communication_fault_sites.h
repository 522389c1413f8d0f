// The fault points of collective operations.
#pragma once

#include <array>

#include "src/base/fault_site.h"

namespace trireme {

inline constexpr std::array kCommunicationFaultSites = {
    FaultSite{"comm.all_reduce", FaultSite::Kind::point, "before an all-reduce is started"},
    FaultSite{"comm.wait", FaultSite::Kind::point,
              "within an operation, before it waits for a peer"},
};

}  // namespace trireme
