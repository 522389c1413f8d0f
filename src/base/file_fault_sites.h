// The fault points of calls on files (file.h).
#pragma once

#include <array>

#include "src/base/fault_site.h"

namespace trireme {

inline constexpr std::array kFileFaultSites = {
    FaultSite{"file.open", FaultSite::Kind::call, "opening or creating any file"},
    FaultSite{"file.read", FaultSite::Kind::call, "reading from any file"},
    FaultSite{"file.write", FaultSite::Kind::call, "writing to any file"},
    FaultSite{"file.sync", FaultSite::Kind::call, "fsync of any file or folder"},
    FaultSite{"file.close", FaultSite::Kind::call, "closing a file that was written"},
    FaultSite{"file.rename", FaultSite::Kind::call, "renaming anything"},
};

}  // namespace trireme
