// Cuts a Jinja template into tokens, with the settings that chat templates are written for: a
// newline after a block tag is dropped (trim_blocks), and so are blanks in front of one
// (lstrip_blocks). A pure function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct JinjaToken {
  enum class Kind {
    text,
    print_begin,
    print_end,
    block_begin,
    block_end,
    name,
    string,
    integer,
    number,
    sign,
    end
  };
  Kind kind = Kind::end;
  std::string text;  // of a string: its value
  int line = 1;
};

// Throws DataError that names the line. The last token is of the kind `end`.
std::vector<JinjaToken> lex_jinja(std::string_view source);

// Returns how an error in a template begins.
std::string at_line(int line);

}  // namespace trireme
