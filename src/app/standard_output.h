// Standard output: JSON as every subcommand prints it, and the flush that tells whether what was
// printed has arrived. Called from the main thread, outside of other output.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "src/base/printable.h"

namespace trireme {

// Indented or on one line, without a last newline. Bytes that are not UTF-8, as names of files may
// hold, are replaced by U+FFFD: JSON cannot carry them.
std::string json_text(const nlohmann::ordered_json& json);
std::string json_line(const nlohmann::ordered_json& json);

// json_text() or json_line() and a newline. On a terminal all but ASCII is written as \uXXXX, so
// that no text within can control it; JSON means the same either way.
void print_json(const nlohmann::ordered_json& json);
void print_json_line(const nlohmann::ordered_json& json);

// Prints text that may hold anything, such as a model's, in pieces: raw into a file or pipe, and
// as printable_lines() has it on a terminal.
class TextPrinter {
 public:
  TextPrinter();
  void print(std::string_view piece);
  // Ends the text and its line.
  void end();

 private:
  std::optional<PrintableStream> escaped_;  // on a terminal
};

// IoError if anything printed so far could not be written.
void flush_standard_output();

}  // namespace trireme
