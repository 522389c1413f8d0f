// Text of files, arguments and remote peers made fit for a terminal or a log: what a terminal would
// obey instead of showing is written out, so that a file's name or contents can't move the cursor,
// forge lines or change the terminal's settings. Pure functions.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

// One line: control characters (line ends too), characters that reverse the direction of text, and
// bytes that are not UTF-8 become \n, \t, \x1b, \u202e and the like. All else stays as it is.
std::string printable(std::string_view text);
// Several lines: the same, but line ends and tabs stay.
std::string printable_lines(std::string_view text);

// The lines of a message as one, separated by "; ", without their indentation.
std::string joined_lines(std::string_view text);

// printable_lines() of a text that comes in pieces, which may end within a character.
class PrintableStream {
 public:
  // What can be shown by now.
  std::string add(std::string_view piece);
  // The bytes that wait for the rest of their character; the text has ended.
  std::string rest();

 private:
  std::string held_;
};

}  // namespace trireme
