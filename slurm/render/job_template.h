// Templates of job scripts, slurm/templates/*.sbatch, are built into the program. They are scripts
// with two additions:
//
//   {{name}}                          a value; a line with nothing but an empty value is dropped
//   #? if name / #? else / #? end     lines for a nonempty or an empty value; can be nested
//
// Values are inserted unchanged, so the caller quotes them (shell_words.h). Pure functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace trireme {

// The templates by name: {"job", text}.
const std::map<std::string, std::string, std::less<>>& job_templates();

using TemplateValues = std::map<std::string, std::string, std::less<>>;

// Throws an InternalError with the line number if the template is malformed or uses a name that
// `values` lacks.
std::string fill_template(std::string_view text, const TemplateValues& values);

}  // namespace trireme
