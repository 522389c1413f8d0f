// StopStrings: ends a text where one of several strings first appears in it. Text arrives in pieces
// of any length and leaves as soon as no stop string can begin in it. A value; one thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

class StopStrings {
 public:
  // ConfigError if one of them is empty.
  explicit StopStrings(std::vector<std::string> strings);

  // Appends a piece and returns what of the text can be given out now.
  std::string add(std::string_view piece);
  // Whether a stop string has appeared: the text ends before it.
  bool stopped() const { return stopped_; }
  // What was held back as the possible beginning of a stop string; for when no more text comes.
  std::string rest();

 private:
  std::vector<std::string> strings_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace trireme
