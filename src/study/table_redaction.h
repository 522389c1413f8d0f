// Removes the columns of tables that have a secret's name. Pure functions.
#pragma once

#include "src/study/redaction.h"

namespace trireme {

// Replaces the fields of such columns, and the values in lines that begin with such a name,
// whatever table they seem to belong to. JSON stays as it is.
Redacted redact_columns(std::string_view text);

}  // namespace trireme
