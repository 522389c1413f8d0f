// In a manifest's extra: a list of steps that retention leaves alone, whatever their age. The list
// of the newest whole step counts.
#pragma once

namespace trireme {

inline constexpr const char* kKeepStepsField = "keep_steps";

}  // namespace trireme
