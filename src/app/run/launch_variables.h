// Reads the environment variables with which `trireme launch` tells a run about itself.
#pragma once

namespace trireme {

// Returns the mean time between failures that the launch has measured for the run, in hours; 0 if
// unknown. Throws ConfigError for anything but a positive number.
double seen_mtbf_hours();

// Throws ConfigError if TRIREME_GENERATION is set, but is no number of an attempt. It goes into the
// lock and the progress page, where a wrong one would be taken for another run's.
void check_attempt_number();

}  // namespace trireme
