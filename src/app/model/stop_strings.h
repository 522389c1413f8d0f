// StopStrings ends a text where one of several strings first appears in it. Text arrives in pieces
// of any length and is passed on as soon as no stop string can begin in it. A value for one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

class StopStrings {
 public:
  // Throws ConfigError if one of the strings is empty.
  explicit StopStrings(std::vector<std::string> strings);

  // Appends a piece and returns the part of the text that can be passed on now.
  std::string add(std::string_view piece);
  // Returns whether a stop string has appeared; the text ends before it.
  bool stopped() const { return stopped_; }
  // Returns the text held back as the possible beginning of a stop string. Call it after the last
  // piece.
  std::string rest();

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace trireme
