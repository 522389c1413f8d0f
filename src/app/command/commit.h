// The commit that this program was built from. A source that each build generates defines it
// (commit.cmake).
#pragma once

namespace trireme {

extern const char* const kCommit;

}  // namespace trireme
