// Asks twice before something is destroyed that nothing brings back.
#pragma once

#include <string>
#include <vector>

namespace trireme {

// What the two questions ask a person to type a word for: "destroy its keys", "confirm that ...".
struct ConfirmationTexts {
  std::string first;
  std::string second;
  std::string refusal;  // what did not happen, if the answers are others: "nothing was destroyed"
};

// Takes the answers from `given`, the values of --confirm, and asks at a terminal for those that
// are missing. Throws PolicyError unless both are `word`.
void confirm_twice(const std::string& word, const std::vector<std::string>& given,
                   const ConfirmationTexts& texts);

}  // namespace trireme
