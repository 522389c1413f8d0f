// Says in which file the contents are wrong that a parser complains about.
#pragma once

#include <string>

#include "src/base/error.h"

namespace trireme {

// Returns an error whose text is "ORIGIN: WHAT" in one line, or WHAT if that begins with the
// origin, as errors of the system do ("ORIGIN is a FIFO"). Parsers quote names and values from the
// file, whose line ends and control characters are escaped (printable.h), so that they cannot forge
// further lines.
DataError data_error_in(const std::string& origin, const Error& error);

}  // namespace trireme
