// The command line: what the program's commands take, said once for parsing, --help and manual
// pages. CommandLine is the program's, and each of its commands has one below it, which the one
// above owns. Where a value goes must outlive parse(). CLI11 does the work; only command_line.cc
// knows it, for its header costs more to compile than most of our files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trireme {

// The line as typed is wrong. what() says where, and how to get help.
struct UsageError : ConfigError {
  using ConfigError::ConfigError;
};

// What a value must be.
struct Check {
  std::string values;  // as --help shows it: "1..1024"
  // What is wrong with a value as typed; empty: nothing.
  std::function<std::string(const std::string&)> complaint;
};
Check one_of(std::vector<std::string> names);
Check within(int low, int high);
Check within(double low, double high);
Check positive_number();
Check non_negative_number();

// More about an option, while it is being added.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}
  Option& required();
  Option& check(Check values);
  // --help shows the value it has now.
  Option& show_default();
  // What --help calls its values: FILE, SIZE.
  Option& type_name(const std::string& name);
  // How many values it takes.
  Option& expected(int count);
  // Several values may stand in one word.
  Option& delimiter(char between);
  // Each use takes one value, and not all words up to the next option.
  Option& one_value_a_use();

 private:
  CLI::Option& option_;
};

// An option as manual pages tell of it.
struct OptionSummary {
  std::string names;  // "-o,--out", or that of a positional argument: "INPUT"
  std::string type;   // of its values: "INT:1..1024"; empty: it takes none, or is positional
  std::string description;
  std::string default_value;  // empty: not shown
  bool positional = false;
  bool required = false;
  bool several = false;  // takes more than one value
};

class CommandLine {
 public:
  // The program's, of which at most one command is given.
  CommandLine(const std::string& description, const std::string& name);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CommandLine& add_command(const std::string& name, const std::string& description);
  // One of the commands must be given.
  void require_command();
  // names: "-o,--out", or without dashes that of a positional argument.
  Option add_option(const std::string& names, std::string& value, const std::string& description);
  Option add_option(const std::string& names, std::filesystem::path& value,
                    const std::string& description);
  Option add_option(const std::string& names, int& value, const std::string& description);
  Option add_option(const std::string& names, std::int64_t& value, const std::string& description);
  Option add_option(const std::string& names, std::uint64_t& value, const std::string& description);
  Option add_option(const std::string& names, double& value, const std::string& description);
  Option add_option(const std::string& names, std::vector<std::string>& value,
                    const std::string& description);
  Option add_option(const std::string& names, std::vector<int>& value,
                    const std::string& description);
  void add_flag(const std::string& names, bool& value, const std::string& description);
  // Below the options in --help and manual pages.
  void footer(const std::string& text);
  // What the command does, once the whole line is read.
  void callback(std::function<void()> run);

  // Reads a line, the program's name left out, and runs the callbacks of the commands it gives,
  // the innermost first; or prints the help it asks for. UsageError where the line is wrong.
  void parse(const std::vector<std::string>& arguments);
  // Whether the line that was read gives one of the commands below this one.
  bool command_given() const;
  // Of the command that was given, if one was.
  std::string help() const;

  // In the order in which they were added.
  const std::vector<std::unique_ptr<CommandLine>>& commands() const { return commands_; }
  std::vector<OptionSummary> options() const;
  std::string name() const;
  std::string description() const;
  std::string footer() const;

 private:
  explicit CommandLine(CLI::App& app);

  std::unique_ptr<CLI::App> own_;  // the program's
  CLI::App& app_;
  std::vector<std::unique_ptr<CommandLine>> commands_;
};

}  // namespace trireme
