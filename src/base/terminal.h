// Finds the terminal on which people read standard error. A rank writes to a pipe of mpirun or
// srun, which forwards its output unchanged. If the launcher's own standard error is a terminal, it
// sets TRIREME_TERMINAL_COLUMNS for its ranks, and they draw as if on that terminal.
#pragma once

#include <string_view>

namespace trireme {

inline constexpr const char* kTerminalColumns = "TRIREME_TERMINAL_COLUMNS";

// Returns the width of the terminal that shows standard error, or 0 if there is none.
int terminal_columns();

// Returns what a line on standard error must begin with to replace an unfinished progress bar, or
// "" if there is no terminal.
std::string_view line_start();

}  // namespace trireme
