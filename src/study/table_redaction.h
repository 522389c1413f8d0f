// Removes the columns of tables that have a secret's name. Pure functions.
#pragma once

#include "src/study/redaction.h"

namespace trireme {

// Replaces the fields of such columns in a text whose first line is the header of a table with
// commas, semicolons or tabs (RFC 4180). Other texts stay as they are.
Redacted redact_columns(std::string_view text);

}  // namespace trireme
