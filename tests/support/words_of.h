// Splits a line into words like a shell: at blanks, with "" as an empty word.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace trireme {

inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word == "\"\"" ? std::string() : word);
  }
  return words;
}

}  // namespace trireme
