#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "src/app/command/command_line.h"
#include "src/app/command/help_text.h"

namespace trireme {
namespace {

// Adds the names in a list such as "-o, --out".
void add_option_names(std::vector<std::string>& to, const std::string& list) {
  for (std::size_t at = 0; (at = list.find_first_not_of(", ", at)) != std::string::npos;) {
    const std::size_t end = std::min(list.find_first_of(", ", at), list.size());
    to.push_back(list.substr(at, end - at));
    at = end;
  }
}

// Returns whether a list such as "1,,2" has an empty value.
bool has_gap(const std::string& list, char between) {
  return list.starts_with(between) || list.ends_with(between) ||
         list.find(std::string(2, between)) != std::string::npos;
}

}  // namespace

std::vector<std::string> CommandLine::option_names(
    const std::vector<std::string>& arguments) const {
  std::vector<std::string> names;
  const auto add_all = [&names](const CommandLine& command) {
    for (const OptionSummary& option : command.options()) {
      if (!option.positional) {
        add_option_names(names, option.names);
      }
    }
  };
  add_all(*this);
  const CommandLine* at = this;
  for (const std::string& word : arguments) {
    const CommandLine* const next = word == "--" ? this : at->find_command(word);
    if (next != nullptr) {
      add_all(*next);
      at = next;
    }
  }
  return names;
}

// Refuses empty values in lists such as "1,,2". CLI11 would drop them, and take the next option for
// the value of one that has no other.
void CommandLine::check_lists(const std::vector<std::string>& arguments) const {
  const CommandLine* at = this;
  std::optional<OptionSummary> list;  // the option that takes the next words, if it is a list
  for (const std::string& word : arguments) {
    if (word == "--") {
      return;
    }
    std::string values = word;
    if (word.starts_with('-') && word.size() > 1) {
      const std::size_t equals = word.find('=');
      values = equals == std::string::npos ? "" : word.substr(equals + 1);
      list.reset();
      for (const OptionSummary& option : at->options()) {
        std::vector<std::string> names;
        add_option_names(names, option.names);
        if (option.delimiter != 0 &&
            std::find(names.begin(), names.end(), word.substr(0, equals)) != names.end()) {
          list = option;
        }
      }
    } else if (const CommandLine* const next = at->find_command(word); !list && next != nullptr) {
      at = next;
    }
    if (list && has_gap(values, list->delimiter)) {
      throw UsageError(fmt::format("{}: {}: a value in '{}' is empty\n{}", at->path_, list->names,
                                   values, how_to_get_help(*at)));
    }
  }
}

}  // namespace trireme
