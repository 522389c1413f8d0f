// The fault point of loaders (loader.h).
#pragma once

#include <array>

#include "src/base/fault_site.h"

namespace trireme {

inline constexpr std::array kLoaderFaultSites = {
    FaultSite{"data.read", FaultSite::Kind::point,
              "a loader's thread, before it reads a micro-batch"},
};

}  // namespace trireme
