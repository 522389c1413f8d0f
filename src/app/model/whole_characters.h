// WholeCharacters passes text on in whole characters of UTF-8, however it arrives: a piece that
// ends within a character waits for the rest of it. Bytes that are not UTF-8 become U+FFFD. A value
// for one thread.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

class WholeCharacters {
 public:
  // Appends a piece and returns the characters that are complete.
  std::string add(std::string_view piece);
  // Returns what is left at the end of the text: U+FFFD for a character that was not completed.
  std::string rest();

 private:
  std::string held_;
};

}  // namespace trireme
