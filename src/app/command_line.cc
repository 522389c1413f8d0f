#include "src/app/command_line.h"

#include <cstdio>

#include <CLI/CLI.hpp>

namespace trireme {
namespace {

Check check_of(const CLI::Validator& validator) {
  return {validator.get_description(),
          [validator](const std::string& text) { return validator(text); }};
}

// What CLI11 prints of an error.
std::string text_of(const CLI::Error& error, const CLI::App& app) {
  std::string text = CLI::FailureMessage::simple(&app, error);
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

OptionSummary summary_of(const CLI::Option& option) {
  const bool positional = option.get_positional();
  const bool takes_values = option.get_expected_min() > 0;
  return {.names = positional ? option.get_name(true) : option.get_name(false, true),
          .type = takes_values && !positional ? option.get_type_name() : "",
          .description = option.get_description(),
          .default_value = option.get_default_str(),
          .positional = positional,
          .required = option.get_required(),
          .several = option.get_items_expected_max() > 1};
}

}  // namespace

Check one_of(std::vector<std::string> names) { return check_of(CLI::IsMember(std::move(names))); }
Check within(int low, int high) { return check_of(CLI::Range(low, high)); }
Check within(double low, double high) { return check_of(CLI::Range(low, high)); }
Check positive_number() { return check_of(CLI::PositiveNumber); }
Check non_negative_number() { return check_of(CLI::NonNegativeNumber); }

Option& Option::required() {
  option_.required();
  return *this;
}

Option& Option::check(Check values) {
  option_.check(CLI::Validator(
      [complaint = std::move(values.complaint)](std::string& text) { return complaint(text); },
      values.values));
  return *this;
}

Option& Option::show_default() {
  option_.capture_default_str();
  return *this;
}

Option& Option::type_name(const std::string& name) {
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

Option& Option::one_value_a_use() {
  option_.allow_extra_args(false);
  return *this;
}

CommandLine::CommandLine(const std::string& description, const std::string& name)
    : own_(std::make_unique<CLI::App>(description, name)), app_(*own_) {
  app_.require_subcommand(0, 1);
}

CommandLine::CommandLine(CLI::App& app) : app_(app) {}

CommandLine::~CommandLine() = default;

CommandLine& CommandLine::add_command(const std::string& name, const std::string& description) {
  CLI::App& below = *app_.add_subcommand(name, description);
  commands_.push_back(std::unique_ptr<CommandLine>(new CommandLine(below)));
  return *commands_.back();
}

void CommandLine::require_command() { app_.require_subcommand(1); }

Option CommandLine::add_option(const std::string& names, std::string& value,
                               const std::string& description) {
  return Option(*app_.add_option(names, value, description));
}

Option CommandLine::add_option(const std::string& names, std::filesystem::path& value,
                               const std::string& description) {
  return Option(*app_.add_option(names, value, description));
}

Option CommandLine::add_option(const std::string& names, int& value,
                               const std::string& description) {
  return Option(*app_.add_option(names, value, description));
}

Option CommandLine::add_option(const std::string& names, std::int64_t& value,
                               const std::string& description) {
  return Option(*app_.add_option(names, value, description));
}

Option CommandLine::add_option(const std::string& names, std::uint64_t& value,
                               const std::string& description) {
  return Option(*app_.add_option(names, value, description));
}

Option CommandLine::add_option(const std::string& names, double& value,
                               const std::string& description) {
  return Option(*app_.add_option(names, value, description));
}

Option CommandLine::add_option(const std::string& names, std::vector<std::string>& value,
                               const std::string& description) {
  return Option(*app_.add_option(names, value, description));
}

Option CommandLine::add_option(const std::string& names, std::vector<int>& value,
                               const std::string& description) {
  return Option(*app_.add_option(names, value, description));
}

void CommandLine::add_flag(const std::string& names, bool& value, const std::string& description) {
  app_.add_flag(names, value, description);
}

void CommandLine::footer(const std::string& text) { app_.footer(text); }

void CommandLine::callback(std::function<void()> run) { app_.callback(std::move(run)); }

void CommandLine::parse(const std::vector<std::string>& arguments) {
  try {
    app_.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // the last first
  } catch (const CLI::Success&) {
    std::fputs(help().c_str(), stdout);  // which is no error
  } catch (const CLI::ParseError& error) {
    throw UsageError(text_of(error, app_));
  }
}

bool CommandLine::command_given() const { return !app_.get_subcommands().empty(); }

std::string CommandLine::help() const { return app_.help(); }

std::vector<OptionSummary> CommandLine::options() const {
  std::vector<OptionSummary> options;
  for (const CLI::Option* option : app_.get_options()) {
    options.push_back(summary_of(*option));
  }
  return options;
}

std::string CommandLine::name() const { return app_.get_name(); }
std::string CommandLine::description() const { return app_.get_description(); }
std::string CommandLine::footer() const { return app_.get_footer(); }

}  // namespace trireme
