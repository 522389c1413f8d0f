// Fault points of each kind, for tests of fault plans.
#pragma once

#include <array>

#include "src/base/fault_site.h"

namespace trireme {

inline constexpr std::array kSomeFaultSites = {
    FaultSite{"data.read", FaultSite::Kind::point, ""},
    FaultSite{"load.shard", FaultSite::Kind::data, ""},
    FaultSite{"step.forward", FaultSite::Kind::point, ""},
    FaultSite{"step.gradient", FaultSite::Kind::numbers, ""},
    FaultSite{"step.end", FaultSite::Kind::point, ""},
    FaultSite{"ckpt.shard_open", FaultSite::Kind::point, ""},
    FaultSite{"ckpt.rename", FaultSite::Kind::point, ""},
    FaultSite{"file.open", FaultSite::Kind::call, ""},
    FaultSite{"file.read", FaultSite::Kind::call, ""},
    FaultSite{"file.write", FaultSite::Kind::call, ""},
    FaultSite{"file.sync", FaultSite::Kind::call, ""},
    FaultSite{"file.close", FaultSite::Kind::call, ""},
    FaultSite{"file.rename", FaultSite::Kind::call, ""},
};

}  // namespace trireme
