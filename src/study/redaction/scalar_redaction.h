// Removes secrets from scalars of YAML in quotes and from lists of a command's words. Pure
// functions; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "src/study/redaction/redaction.h"

namespace trireme {

struct ScalarLine {
  std::size_t end = 0;  // of the scalar, behind its quote
  Redacted redacted;    // the line up to there
};

// Redacts a line such as `on_event: "..."` or `- '...'`, which begins at `at` and holds one whole
// scalar in quotes: its contents without escapes are searched by themselves and written back in
// quotes, so that the line stays valid. Returns nothing if the line is another one, or if its name
// makes the scalar a secret as a whole.
std::optional<ScalarLine> redact_quoted_line(std::string_view text, std::size_t at);

// CommandItems is told the lines of a text in their order, and knows which are words of a command
// in a block list of YAML, as in "- --password" above "- x".
class CommandItems {
 public:
  // Takes the line that begins at `at`. Returns the place and end of the secret in it, if the line
  // before is an option that makes it one.
  std::optional<ScalarLine> next(std::string_view text, std::size_t at);

 private:
  std::string option_;           // that of the line before
  std::string word_;             // of the line before
  std::size_t indentation_ = 0;  // of the list
  char letter_ = 0;              // of the option that gives the current command a password
  bool curl_ = false;            // whether it is one of curl
};

}  // namespace trireme
