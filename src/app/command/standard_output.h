// Prints to standard output: JSON in the form that all subcommands print, and a flush that reports
// lost output. Called from the main thread, outside of other output.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "src/base/printable.h"

namespace trireme {

// Return JSON indented or on one line, without a newline at the end. Bytes that are not UTF-8,
// which file names may contain, are replaced by U+FFFD, since JSON cannot represent them.
std::string json_text(const nlohmann::ordered_json& json);
std::string json_line(const nlohmann::ordered_json& json);

// Print json_text() or json_line() and a newline. On a terminal, characters outside ASCII are
// escaped as \uXXXX, so that no text can control the terminal; its meaning as JSON is the same.
void print_json(const nlohmann::ordered_json& json);
void print_json_line(const nlohmann::ordered_json& json);

// Prints arbitrary text, such as a model's, piece by piece: unchanged into a file or pipe, and in
// the form of printable_lines() on a terminal.
class TextPrinter {
 public:
  TextPrinter();
  void print(std::string_view piece);
  // Ends the text and its last line.
  void end();

 private:
  std::optional<PrintableStream> escaped_;  // set if standard output is a terminal
};

// Throws IoError if anything printed so far could not be written.
void flush_standard_output();

}  // namespace trireme
