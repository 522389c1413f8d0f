// Keeps commands from replacing what they read, for example if a shell expands `-o results/*.json`.
#pragma once

#include <string>
#include <vector>

namespace trireme {

// Throws ConfigError if `out` is one of the inputs, also by another name of the file, or if it is a
// file in a folder among them that is no page or archive made before (.html, .md, .tar), or if it
// lies in a dataset or checkpoint or belongs to a run, a study or an acceptance. Called before
// anything is read.
void check_output(const std::string& out, const std::vector<std::string>& inputs);

}  // namespace trireme
