// A Finding describes something that would make a launch fail or run badly: what, where, and what
// to do about it. Plain values and pure functions.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/base/error.h"

namespace trireme {

enum class Severity {
  warning,  // the launch would run, but slowly or at a risk
  error     // the launch would fail
};

struct Finding {
  Severity severity = Severity::warning;
  ExitCode code = ExitCode::below_threshold;  // exit code of a launch that fails for this reason
  std::string what;
  std::string where;  // "run.dir", "n3"
  std::string remedy;
};

Finding warning_of(std::string what, std::string where, std::string remedy);
// Makes a finding of an exception; its exit code is that of the exception.
Finding error_of(const Error& error, std::string where);

void append(std::vector<Finding>& all, std::vector<Finding> more);

nlohmann::json to_json(const std::vector<Finding>& findings);
// Throws DataError if another version of the program has written the findings.
std::vector<Finding> findings_from_json(const nlohmann::json& json);

// Merges equal findings of several hosts into one, whose `where` lists them. Errors come first;
// otherwise the order is kept.
std::vector<Finding> merged(const std::vector<Finding>& findings);
// Returns the exit code of the first error; 4 if there are only warnings, 0 if there are no
// findings.
ExitCode exit_code_of(const std::vector<Finding>& findings);

}  // namespace trireme
