// Makes the text that --help prints for a command, and the parts of it that manual pages use as
// well.
#pragma once

#include <string>
#include <string_view>

#include "src/app/command/command_line.h"

namespace trireme {

// Returns usage, description, commands, options, notes and examples, at most 80 columns wide.
std::string help_text(const CommandLine& command);

// Returns "Try 'trireme train --help' for more information."
std::string how_to_get_help(const CommandLine& command);

// Returns the arguments of a command, such as "[OPTION]... --out DIR INPUT...".
std::string usage_arguments(const CommandLine& command);

// Returns a description such as "The number of samples (default: 4)".
std::string option_description(const OptionSummary& option);

// The two parts of a footer.
struct Footer {
  std::string notes;     // sentences, in paragraphs that are separated by empty lines
  std::string examples;  // lines with their newlines, without the indentation
};
Footer footer_of(const CommandLine& command);

// Wraps text into lines of at most `width` columns. The first line begins at column `at`, and the
// others are indented by `indent`. A word that is too long gets its own line. Empty lines separate
// paragraphs. The result has no newline at its end.
std::string filled(std::string_view text, std::size_t width, std::size_t indent, std::size_t at);

}  // namespace trireme
