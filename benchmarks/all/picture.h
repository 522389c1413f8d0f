// Formats the table of `trireme bench all`: a line per answer, with the figure that it is compared
// with, if there is one. Pure functions.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace trireme {

// Answer holds the outcome of a question.
struct Answer {
  std::string question;
  double seconds = 0;                      // how long the question took
  nlohmann::ordered_json results;          // empty if it was left out or failed
  std::string trouble;                     // why there are no results, or ""
  std::exception_ptr error = {};           // if the question failed
  std::vector<std::string> left_out = {};  // sizes for which there was no time
};

std::string picture_text(const std::vector<Answer>& answers);

}  // namespace trireme
