#include "src/app/command/help_text.h"

#include <algorithm>
#include <sstream>

namespace trireme {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::size_t kDescriptionColumn = 26;

std::string usage_text(const CommandLine& command) {
  std::string text;
  std::string_view head = "Usage: ";
  const auto add = [&](const std::string& path, const std::string& arguments) {
    const std::string start = std::string(head) + path + " ";
    text += start + filled(arguments, kWidth, head.size() + 4, start.size()) + "\n";
    head = "       ";
  };
  if (!command.needs_command()) {
    add(command.path(), usage_arguments(command));
  }
  if (!command.commands().empty()) {
    add(command.path(), "COMMAND [ARGUMENT]...");
  }
  return text;
}

// Formats "  --out DIR       The folder ...", with the description on its own line if the head is
// long.
std::string entry(const std::string& head, const std::string& description) {
  std::string text = "  " + head;
  if (text.size() + 2 > kDescriptionColumn) {
    text += "\n";
    text += std::string(kDescriptionColumn, ' ');
  } else {
    text.resize(kDescriptionColumn, ' ');
  }
  return text + filled(description, kWidth, kDescriptionColumn, kDescriptionColumn) + "\n";
}

std::string option_head(const OptionSummary& option) {
  if (option.positional) {
    return option.names + (option.several ? "..." : "");
  }
  // Long names are aligned whether or not there is a short one.
  const std::string names = option.names.starts_with("--") ? "    " + option.names : option.names;
  return option.type.empty() ? names : names + " " + option.type;
}

std::string options_text(const CommandLine& command) {
  std::string arguments;
  std::string options;
  for (const OptionSummary& option : command.shown_options()) {
    (option.positional ? arguments : options) +=
        entry(option_head(option), option_description(option));
  }
  return (arguments.empty() ? "" : "\nArguments:\n" + arguments) + "\nOptions:\n" + options;
}

std::string commands_text(const CommandLine& command) {
  std::string text;
  for (const auto& below : command.commands()) {
    text += entry(below->name(), below->description());
  }
  return text.empty() ? "" : "\nCommands:\n" + text;
}

std::string footer_text(const CommandLine& command) {
  const Footer footer = footer_of(command);
  std::string text = footer.notes.empty() ? "" : "\n" + filled(footer.notes, kWidth, 0, 0) + "\n";
  std::istringstream lines(footer.examples);
  text += footer.examples.empty() ? "" : "\nExamples:\n";
  for (std::string line; std::getline(lines, line);) {
    text += "  " + line + "\n";
  }
  return text;
}

}  // namespace

std::string filled(std::string_view text, std::size_t width, std::size_t indent, std::size_t at) {
  std::string out;
  std::size_t column = at;
  bool line_is_empty = true;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    if (line.empty()) {
      out += "\n\n" + std::string(indent, ' ');
      column = indent;
      line_is_empty = true;
    }
    for (std::string word; words >> word;) {
      if (!line_is_empty && column + 1 + word.size() > width) {
        out += "\n" + std::string(indent, ' ');
        column = indent;
        line_is_empty = true;
      }
      out += (line_is_empty ? "" : " ") + word;
      column += word.size() + (line_is_empty ? 0 : 1);
      line_is_empty = false;
    }
  }
  return out;
}

Footer footer_of(const CommandLine& command) {
  Footer footer;
  std::istringstream lines(command.footer());
  bool in_examples = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Example:" || line == "Examples:") {
      in_examples = true;
    } else if (in_examples && line.starts_with("  ")) {
      footer.examples += line.substr(2) + "\n";
    } else {
      in_examples = false;
      footer.notes += line + "\n";
    }
  }
  return footer;
}

std::string usage_arguments(const CommandLine& command) {
  if (!command.usage().empty()) {
    return command.usage();
  }
  std::string required;
  std::string positional;
  for (const OptionSummary& option : command.shown_options()) {
    const std::string word = option.names + (option.several ? "..." : "");
    if (option.positional) {
      positional +=
          option.required ? " " + word : " [" + option.names + "]" + (option.several ? "..." : "");
    } else if (option.required) {
      const std::size_t last = option.names.rfind(' ');
      required +=
          " " + option.names.substr(last == std::string::npos ? 0 : last + 1) + " " + option.type;
    }
  }
  return "[OPTION]..." + required + positional;
}

std::string option_description(const OptionSummary& option) {
  return option.default_value.empty()
             ? option.description
             : fmt::format("{} (default: {})", option.description, option.default_value);
}

std::string how_to_get_help(const CommandLine& command) {
  return fmt::format("Try '{} --help' for more information.", command.path());
}

std::string help_text(const CommandLine& command) {
  return usage_text(command) + "\n" + filled(command.description(), kWidth, 0, 0) + "\n" +
         commands_text(command) + options_text(command) + footer_text(command);
}

}  // namespace trireme
