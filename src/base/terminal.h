// What people read standard error on. A rank writes into the pipe of mpirun or srun, which passes
// on what it writes as it is; a launcher whose own standard error is a terminal tells its ranks so
// in TRIREME_TERMINAL_COLUMNS, and they draw as if it were theirs.
#pragma once

#include <string_view>

namespace trireme {

inline constexpr const char* kTerminalColumns = "TRIREME_TERMINAL_COLUMNS";

// The width of the terminal that shows standard error; 0 where there is none.
int terminal_columns();

// What a line on standard error begins with, so that it replaces a progress bar which has not been
// ended; empty where there is no terminal.
std::string_view line_start();

}  // namespace trireme
