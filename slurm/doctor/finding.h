// Finding: something that would fail or hurt in a launch: what, where, and what to do about it.
// Plain values and pure functions.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/base/error.h"

namespace trireme {

enum class Severity {
  warning,  // it will run, but slowly or at a risk
  error     // it will not run
};

struct Finding {
  Severity severity = Severity::warning;
  ExitCode code = ExitCode::below_threshold;  // what the launch would end with
  std::string what;
  std::string where;  // "run.dir", "n3"
  std::string remedy;
};

Finding warning_of(std::string what, std::string where, std::string remedy);
// As an error that was thrown says it: the code is the error's.
Finding error_of(const Error& error, std::string where);

nlohmann::json to_json(const std::vector<Finding>& findings);
// DataError where another version of the program has written them.
std::vector<Finding> findings_from_json(const nlohmann::json& json);

// What several hosts found alike becomes one, whose `where` lists them; errors first, otherwise in
// the order given.
std::vector<Finding> merged(const std::vector<Finding>& findings);
// Of the first error, 4 for warnings alone, 0 for none.
ExitCode exit_code_of(const std::vector<Finding>& findings);

}  // namespace trireme
