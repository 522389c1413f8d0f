// Keeps the numbers at the ends of the rows of a table when a cell before them holds a secret.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "src/study/redaction/scalar_redaction.h"

namespace trireme {

// TableNumbers is told the lines of a text one by one.
class TableNumbers {
 public:
  // Takes the next line, which begins at `at`. Returns its redacted text up to the numbers at its
  // end, if it is a row with a secret below a header of three and more names between commas or
  // semicolons. A secret cannot go on with these numbers.
  std::optional<ScalarLine> next(std::string_view text, std::size_t at);

 private:
  std::ptrdiff_t separators_ = 0;  // in each row of the current table, or 0
  char separator_ = ',';
};

}  // namespace trireme
