// Makes text of files, arguments and remote peers safe to show in a terminal or log. Characters
// that a terminal would interpret are escaped, so that the text can't move the cursor, forge lines
// or change the terminal's settings. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// Escapes one line: control characters including line ends, characters that reverse the direction
// of text, and bytes that are not UTF-8 become \n, \t, \x1b, \u202e and the like. All other text is
// unchanged.
std::string printable(std::string_view text);
// Escapes several lines in the same way, but keeps line ends and tabs.
std::string printable_lines(std::string_view text);

// Joins the lines of a message by "; ", or by a blank after ":", without their indentation.
std::string joined_lines(std::string_view text);

// Applies printable_lines() to a text that arrives in pieces, which may end within a character.
class PrintableStream {
 public:
  // Returns what can be shown so far.
  std::string add(std::string_view piece);
  // Called at the end of the text. Returns the bytes that were kept for an incomplete character.
  std::string rest();

 private:
  std::string held_;
};

}  // namespace trireme
