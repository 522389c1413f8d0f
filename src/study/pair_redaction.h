// Removes secrets from lines of a name and its values, such as "api_key<tab>x". Pure functions.
#pragma once

#include "src/study/redaction.h"

namespace trireme {

// Replaces what follows a secret's name at the start of a line behind a comma, a semicolon, a tab,
// a bar or several blanks. In a list of such lines, the first one looks like the header of a table,
// so that a header that begins with a secret's name loses its other names, too. What follows in
// several aligned columns is replaced only where it doesn't look like ordinary words.
Redacted redact_pairs(std::string_view text);

}  // namespace trireme
