// Formats a note of a launch as a line for stderr. Depends on the clock and the host's name.
#pragma once

#include <string>

#include "slurm/policy/course.h"

namespace trireme {

// Returns "2026-11-22 11:50:24 trireme launch: TEXT", or with `is_json` an object like those of the
// ranks, with the launch's ID instead of a rank.
std::string note_line(const Note& note, const std::string& launch, bool is_json);

}  // namespace trireme
