// Templates of job scripts: slurm/templates/*.sbatch, built into the program. Plain scripts but for
//
//   {{name}}                          the value; a line that is nothing but an empty value goes
//   #? if name / #? else / #? end     lines for a name that has a value, or has none; may be nested
//
// Values are put in as they are: who makes them quotes them (shell_words.h). Pure functions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace trireme {

// By name: {"job", text}.
const std::map<std::string, std::string, std::less<>>& job_templates();

using TemplateValues = std::map<std::string, std::string, std::less<>>;

// InternalError, with the line, for a template that names what `values` lacks or is not well made.
std::string fill_template(std::string_view text, const TemplateValues& values);

}  // namespace trireme
