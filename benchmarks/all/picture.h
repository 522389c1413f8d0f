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
  double seconds = 0;  // how long the question took
  // Empty if it was left out or failed; of a question that did not end, the rows that it
  // had measured, each with {"unfinished": true}.
  nlohmann::ordered_json results;
  std::string trouble;  // why there are no results, or ""
  bool has_failed = false;
  std::exception_ptr error = {};           // why it has failed, unless it did not end
  std::vector<std::string> left_out = {};  // sizes for which there was no time
};

// Returns the answer of a question that has failed.
Answer failed_answer(const std::string& question, double seconds, const std::string& why,
                     std::exception_ptr error);

// Adds, at a premature end, what became of the questions after those that were answered: the next
// one did not end, and the others were not asked. questions: the names of all, in order. why: what
// is said of the next one, such as "did not end in time". rows: what it had measured.
std::vector<Answer> with_unanswered(std::vector<Answer> answers,
                                    const std::vector<std::string>& questions,
                                    const std::string& why, double seconds,
                                    nlohmann::ordered_json rows);

// Returns the question with an unfinished row in which something came out wrong, or "".
std::string wrong_question(const std::vector<Answer>& answers);

std::string picture_text(const std::vector<Answer>& answers);

}  // namespace trireme
