// The questions that `trireme bench all` asks, each with a benchmark that answers it in a given
// time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/measured_rows.h"
#include "src/app/command/app_context.h"

namespace trireme {

// How much time a question has, and who gets its rows as it goes.
struct QuestionTime {
  double seconds = 0;    // to measure, preparations excluded
  double for_sizes = 0;  // by which sizes are chosen (budget.h)
  MeasuredRows* rows = nullptr;
};

struct QuestionResults {
  nlohmann::ordered_json results;
  std::vector<std::string> left_out = {};  // what there was no time for
};

struct Question {
  std::string name;  // of the benchmark: "gemm"
  double weight = 1;
  // With less time than this it is left out.
  double least_seconds = 1;
  // Measures and returns the results. Collective.
  std::function<QuestionResults(const QuestionTime& time)> ask;
};

std::vector<std::string> question_names();
// Returns those of the questions that are named; all of them if `only` is empty. Throws ConfigError
// if none is left.
std::vector<Question> chosen(std::vector<Question> all, const std::vector<std::string>& only);
// Returns the questions that these ranks can answer. folder: on the file system to measure.
std::vector<Question> questions_for(AppContext& context, const std::filesystem::path& folder);

}  // namespace trireme
