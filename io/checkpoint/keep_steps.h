// Names the field in a manifest's `extra` that lists steps which retention never deletes. Only the
// list of the newest whole step is used.
#pragma once

namespace trireme {

inline constexpr const char* kKeepStepsField = "keep_steps";

}  // namespace trireme
