// Makes a table of the results of a benchmark. Pure functions; the results have checked objects
// "params" and "metrics".
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/report/document.h"

namespace trireme {

// Results of one name, in the order of the file.
using Results = std::vector<const nlohmann::json*>;

// Returns a value of a document as a cell of a table.
std::string cell_text(const nlohmann::json& value);

// Returns a table of the parameters that differ between the results, and their metrics.
DocTable results_table(const std::string& name, const Results& results);

// Returns the parameters that are equal in all of several results, which their table leaves out:
// "m = 512, n = 512".
std::string equal_params(const Results& results);

// Throws DataError if a sample of a result is neither a number nor null, or samples have no values.
void check_samples(const nlohmann::json& result);

}  // namespace trireme
