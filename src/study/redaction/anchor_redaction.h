// Removes secrets that YAML gives a name elsewhere, as in "a: &pw x" and "password: *pw". Pure
// functions.
#pragma once

#include "src/study/redaction/redaction.h"

namespace trireme {

// Replaces the values of all anchors with aliases, if they or one of these are values, or in lists,
// of secret names. The anchors themselves stay, so that their aliases mean something.
Redacted redact_anchors(std::string text);

}  // namespace trireme
