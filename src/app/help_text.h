// What --help prints about a command, and the parts of it that manual pages show as well.
#pragma once

#include <string>
#include <string_view>

#include "src/app/command_line.h"

namespace trireme {

// Usage, description, commands, options, notes and examples, at most 80 columns wide.
std::string help_text(const CommandLine& command);

// "Try 'trireme train --help' for more information."
std::string how_to_get_help(const CommandLine& command);

// The arguments of a command: "[OPTION]... --out DIR INPUT...".
std::string usage_arguments(const CommandLine& command);

// "The number of samples (default: 4)".
std::string option_description(const OptionSummary& option);

// A footer's two parts.
struct Footer {
  std::string notes;     // sentences; paragraphs are separated by empty lines
  std::string examples;  // lines, each with its newline, without the indentation
};
Footer footer_of(const CommandLine& command);

// Fills lines of at most `width` columns with the words of the text. The first line begins at
// column `at`, the others are indented by `indent`; a word that is longer has its own line. Empty
// lines separate paragraphs. Ends without a newline.
std::string filled(std::string_view text, std::size_t width, std::size_t indent, std::size_t at);

}  // namespace trireme
