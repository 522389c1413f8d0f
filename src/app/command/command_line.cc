#include "src/app/command/command_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include "src/app/command/help_text.h"
#include "src/app/command/written_files.h"
#include "src/base/config_tree.h"

namespace trireme {
namespace {

// Returns "; did you mean 'train'?" or the like, or "" if no known word is similar.
std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  // "--temp" means "--temperature", although "--help" has fewer other letters.
  const auto longer = std::find_if(known.begin(), known.end(), [&](const std::string& each) {
    return word.size() > 4 && each.starts_with(word);
  });
  const std::string near = longer != known.end() ? *longer : nearest_word(word, known);
  return near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
}

// Rewords CLI11's messages in our style.
std::string text_of(const CLI::Error& error) {
  const std::string text = error.what();
  constexpr std::string_view kConversion = "Could not convert: ";
  const std::size_t equals = text.find(" = ");
  if (text.starts_with(kConversion) && equals != std::string::npos) {
    const std::string value = text.substr(equals + 3);
    const std::size_t sign = value.starts_with('-') || value.starts_with('+') ? 1 : 0;
    const bool digits =
        value.size() > sign && value.find_first_not_of("0123456789", sign) == std::string::npos;
    return fmt::format("{}: '{}' is {}",
                       text.substr(kConversion.size(), equals - kConversion.size()), value,
                       digits ? "out of range" : "not a number");
  }
  if (const std::size_t several = text.find(": At Most 1 required "); several != text.npos) {
    return text.substr(0, several) + " is given more than once";
  }
  const std::size_t missing = text.find(": 1 required ");
  return missing == std::string::npos ? text : text.substr(0, missing) + ": the value is missing";
}

// Returns the default as shown to people, or "" if there is none or the description names it.
std::string default_of(const CLI::Option& option) {
  const bool described = option.get_description().find("(default: ") != std::string::npos;
  return option.get_required() || described ? "" : option.get_default_str();
}

// Returns whether the next word is the value of the option `word`, such as "--out".
bool takes_next_word(const std::vector<OptionSummary>& options, const std::string& word) {
  return std::any_of(options.begin(), options.end(), [&](const OptionSummary& option) {
    return !option.type.empty() &&
           (", " + option.names + ",").find(", " + word + ",") != std::string::npos;
  });
}

OptionSummary summary_of(const CLI::Option& option) {
  const bool positional = option.get_positional();
  const bool takes_values = option.get_expected_min() > 0;
  std::string names = option.get_name(positional, !positional);
  if (const std::size_t comma = names.find(','); comma != std::string::npos) {
    names.replace(comma, 1, ", ");
  }
  return {.names = names,
          .type = takes_values && !positional ? option.get_type_name() : "",
          .description = option.get_description(),
          .default_value = default_of(option),
          .positional = positional,
          .required = option.get_required(),
          .several = option.get_items_expected_max() > 1,
          .delimiter = option.get_delimiter()};
}

// Makes it an error to pass "" for a file or folder, as a script with an unset variable does: it
// would mean the same as not to give the option.
void refuse_empty_path(CLI::Option& option, const std::string& placeholder) {
  for (const char* kind : {"FILE", "DIR", "PATH", "RUN", "RESULT"}) {
    if (placeholder == kind) {
      option.check(CLI::Validator(
          [](std::string& text) {
            return text.empty() ? "the value is empty; is a variable of a script not set?"
                                : std::string();
          },
          ""));
    }
  }
}

template <class Value>
Option add(CLI::App& app, const std::string& names, Value& value, const std::string& description,
           const char* placeholder) {
  CLI::Option* const option = app.add_option(names, value, description)->type_name(placeholder);
  refuse_empty_path(*option, placeholder);
  return Option(*option->capture_default_str());
}

}  // namespace

Check one_of(std::vector<std::string> names) {
  const std::string words = fmt::format("{}", fmt::join(names, "|"));
  return {words, [names = std::move(names)](const std::string& text) {
            if (std::find(names.begin(), names.end(), text) != names.end()) {
              return std::string();
            }
            // Nearly all words of three letters are alike: gpu is not meant to be cpu.
            const std::string meant = text.size() > 3 ? suggestion(text, names) : "";
            return fmt::format("'{}' is not one of {}{}", text, fmt::join(names, ", "), meant);
          }};
}

Option& Option::required() {
  option_.required();
  return *this;
}

Option& Option::check(Check values) {
  if (!values.words.empty()) {
    option_.type_name(values.words);
  }
  option_.check(CLI::Validator(
      [complaint = std::move(values.complaint)](std::string& text) { return complaint(text); },
      ""));
  return *this;
}

Option& Option::no_default() {
  option_.default_str("");
  return *this;
}

Option& Option::hidden() {
  option_.group("");
  return *this;
}

Option& Option::type_name(const std::string& name) {
  refuse_empty_path(option_, name);
  option_.type_name(name);
  return *this;
}

Option& Option::expected(int count) {
  option_.expected(count);
  return *this;
}

Option& Option::delimiter(char between) {
  option_.delimiter(between);
  return *this;
}

Option& Option::written() {
  mark_as_written(option_);
  return *this;
}

Option& Option::one_value_per_use() {
  option_.allow_extra_args(false);
  return *this;
}

CommandLine::CommandLine(const std::string& description, const std::string& name)
    : own_(std::make_unique<CLI::App>(description, name)), app_(*own_), top_(*this), path_(name) {
  app_.require_subcommand(0, 1);
  app_.set_help_flag("-h,--help", "Print this help and exit");
}

CommandLine::CommandLine(CLI::App& app, std::string path, CommandLine& top)
    : app_(app), top_(top), path_(std::move(path)) {}

CommandLine::~CommandLine() = default;

std::unique_ptr<CommandLine> CommandLine::make_command(const std::string& name,
                                                       const std::string& description) {
  CLI::App& below = *app_.add_subcommand(name, description);
  return std::unique_ptr<CommandLine>(new CommandLine(below, path_ + " " + name, top_));
}

CommandLine& CommandLine::add_command(const std::string& name, const std::string& description) {
  commands_.push_back(make_command(name, description));
  return *commands_.back();
}

CommandLine& CommandLine::add_hidden_command(const std::string& name,
                                             const std::string& description) {
  hidden_commands_.push_back(make_command(name, description));
  return *hidden_commands_.back();
}

void CommandLine::require_command() {
  app_.require_subcommand(1);
  needs_command_ = true;
}

Option CommandLine::add_option(const std::string& names, std::string& value,
                               const std::string& description) {
  return add(app_, names, value, description, "TEXT");
}

Option CommandLine::add_option(const std::string& names, std::filesystem::path& value,
                               const std::string& description) {
  return add(app_, names, value, description, "PATH");
}

Option CommandLine::add_option(const std::string& names, int& value,
                               const std::string& description) {
  return add(app_, names, value, description, "N");
}

Option CommandLine::add_option(const std::string& names, std::int64_t& value,
                               const std::string& description) {
  return add(app_, names, value, description, "N");
}

Option CommandLine::add_option(const std::string& names, std::uint64_t& value,
                               const std::string& description) {
  return add(app_, names, value, description, "N");
}

Option CommandLine::add_option(const std::string& names, double& value,
                               const std::string& description) {
  Option option = add(app_, names, value, description, "NUMBER");
  // NaN would pass any range check, since no comparison with it is true.
  option.check({"", [](const std::string& text) {
                  return std::isnan(std::strtod(text.c_str(), nullptr))
                             ? fmt::format("'{}' is not a number", text)
                             : std::string();
                }});
  return option;
}

Option CommandLine::add_option(const std::string& names, std::vector<std::string>& value,
                               const std::string& description) {
  return add(app_, names, value, description, "TEXT").no_default();
}

Option CommandLine::add_option(const std::string& names, std::vector<int>& value,
                               const std::string& description) {
  return add(app_, names, value, description, "N").no_default();
}

void CommandLine::add_flag(const std::string& names, bool& value, const std::string& description) {
  app_.add_flag(names, value, description);
}

// What `run` has captured may own the variables of the options, so usage_problem() keeps it.
void CommandLine::callback(std::function<void()> run) {
  app_.callback([this, run = std::move(run)] {
    if (const std::string clash = clash_of_written_files(app_); !clash.empty()) {
      throw UsageError(fmt::format("{}: {}\n{}", path_, clash, how_to_get_help(*this)));
    }
    if (!top_.only_checks_) {
      run();
    }
  });
}

const CommandLine* CommandLine::find_command(const std::string& name) const {
  for (const auto* list : {&commands_, &hidden_commands_}) {
    for (const auto& command : *list) {
      if (command->name() == name) {
        return command.get();
      }
    }
  }
  return nullptr;
}

const CommandLine& CommandLine::given() const {
  const std::vector<CLI::App*> below = app_.get_subcommands();
  return below.empty() ? *this : find_command(below.front()->get_name())->given();
}

// Reports an unknown command. CLI11 would report it and all following words as unexpected
// arguments.
void CommandLine::check_commands(const std::vector<std::string>& arguments) const {
  const CommandLine* at = this;
  bool is_value = false;
  for (const std::string& word : arguments) {
    if (std::exchange(is_value, false)) {
      continue;
    }
    const std::vector<OptionSummary> options = at->options();
    const bool takes_words = std::any_of(options.begin(), options.end(),
                                         [](const auto& each) { return each.positional; });
    if (at->commands_.empty() || takes_words || word == "--") {
      return;
    }
    if (word.starts_with('-')) {
      is_value = takes_next_word(options, word);
      continue;
    }
    const CommandLine* const next = at->find_command(word);
    if (next == nullptr) {
      std::vector<std::string> names;
      for (const auto& command : at->commands_) {
        names.push_back(command->name());
      }
      std::string meant = suggestion(word, names);
      if (meant.empty() && at != this) {  // the help of the program lists too many to repeat here
        meant = fmt::format("; did you mean '{}'?", fmt::join(names, "', '"));
      }
      throw UsageError(fmt::format("{}: unknown command '{}'{}\n{}", at->path_, word, meant,
                                   how_to_get_help(*at)));
    }
    at = next;
  }
}

// Returns the message about unexpected arguments. Called for the command that was given.
std::string CommandLine::unexpected_argument() const {
  const std::vector<std::string> left = app_.remaining(true);
  const auto option = std::find_if(left.begin(), left.end(), [](const std::string& word) {
    return word.starts_with('-') && word != "-" && word != "--";
  });
  if (option == left.end()) {
    return left.empty() ? "there are too many arguments"
                        : fmt::format("unexpected argument '{}'", left.front());
  }
  std::vector<std::string> known;
  for (const CLI::Option* each : app_.get_options()) {
    for (const std::string& name : each->get_lnames()) {
      known.push_back("--" + name);
    }
  }
  const std::string name = option->substr(0, option->find('='));
  return fmt::format("unknown option '{}'{}", name, suggestion(name, known));
}

bool CommandLine::asks_for_help(const std::vector<std::string>& arguments) {
  check_commands(arguments);
  check_lists(arguments);
  const auto fail = [this](const std::string& text) {
    throw UsageError(fmt::format("{}: {}\n{}", given().path(), text, how_to_get_help(given())));
  };
  try {
    // CLI11 expects the last word first.
    app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success&) {
    return true;
  } catch (const CLI::ExtrasError&) {
    fail(given().unexpected_argument());
  } catch (const CLI::RequiredError& error) {
    // What is missing may have been misspelt.
    const std::vector<std::string> left = given().app_.remaining(true);
    const bool has_unknown = std::any_of(left.begin(), left.end(), [](const std::string& word) {
      return word.starts_with("--") && word.size() > 2;
    });
    fail(has_unknown              ? given().unexpected_argument()
         : given().needs_command_ ? "name one of its commands"
                                  : text_of(error));
  } catch (const CLI::ParseError& error) {
    fail(text_of(error));
  }
  return false;
}

void CommandLine::parse(const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) {
    std::fputs(help_text(given()).c_str(), stdout);
  }
}

std::string CommandLine::usage_problem(const std::vector<std::string>& arguments) {
  only_checks_ = true;
  std::string problem;
  try {
    asks_for_help(arguments);
  } catch (const UsageError& error) {
    const std::string text = error.what();
    problem = text.substr(0, text.find('\n'));
  }
  only_checks_ = false;
  return problem;
}

bool CommandLine::command_given() const { return !app_.get_subcommands().empty(); }

std::vector<OptionSummary> CommandLine::options(bool with_hidden) const {
  std::vector<OptionSummary> options;
  for (const CLI::Option* option : app_.get_options()) {
    if (with_hidden || !option->get_group().empty()) {
      options.push_back(summary_of(*option));
    }
  }
  return options;
}

std::string CommandLine::name() const { return app_.get_name(); }
std::string CommandLine::description() const { return app_.get_description(); }

}  // namespace trireme
