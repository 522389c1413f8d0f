// Standard output: JSON as every subcommand prints it, and the flush that tells whether what was
// printed has arrived. Called from the main thread, outside of other output.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

// Indented or on one line, without a last newline. Bytes that are not UTF-8, as names of files may
// hold, are replaced by U+FFFD: JSON cannot carry them.
std::string json_text(const nlohmann::ordered_json& json);
std::string json_line(const nlohmann::ordered_json& json);

// json_text() and a newline.
void print_json(const nlohmann::ordered_json& json);

// IoError if anything printed so far could not be written.
void flush_standard_output();

}  // namespace trireme
