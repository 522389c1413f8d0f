// Removes the columns of tables that have a secret's name, and the values in lines of such a name
// and a value. Pure functions.
#pragma once

#include "src/study/redaction/redaction.h"

namespace trireme {

// Replaces the fields of such columns, and such values. JSON stays as it is.
Redacted redact_columns(std::string_view text);

}  // namespace trireme
