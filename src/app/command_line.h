// The command line: the commands of the program and what they take, declared once for parsing,
// --help (help_text.h) and manual pages (man_command.h). The program has a CommandLine, which owns
// one for each of its commands. The variables that receive values must outlive parse(). CLI11
// parses; only command_line.cc includes its header, which is slow to compile.
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

// The line as typed is wrong. what() names the command and the argument, and how to get help.
struct UsageError : ConfigError {
  using ConfigError::ConfigError;
};

// What a value must be.
struct Check {
  std::string words;  // "rye|oat" if only these are allowed: --help shows them; else empty
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
  // --help shows the value that it has now as the default.
  Option& show_default();
  // The placeholder of its values in --help: FILE, BYTES. Otherwise N, NUMBER, PATH or TEXT, by the
  // type of the variable.
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

// An option as --help and manual pages show it.
struct OptionSummary {
  std::string names;  // "-o, --out", or that of a positional argument: "INPUT"
  std::string type;   // of its values: "N" or "rye|oat"; empty: it takes none, or is positional
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
  // A command that the program starts by itself: neither help nor manual pages show it.
  CommandLine& add_hidden_command(const std::string& name, const std::string& description);
  // One of the commands must be given.
  void require_command();
  // Replaces what --help shows as the usage after the command's name: "[OPTION]... -- train
  // CONFIG".
  void usage(const std::string& arguments) { usage_ = arguments; }
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
  // Examples and notes, shown below the options: a line "Example:" or "Examples:", the examples
  // themselves, indented by two spaces; and sentences, which are filled to the width of the page.
  void footer(const std::string& text) { footer_ = text; }
  // What the command does, once the whole line is read.
  void callback(std::function<void()> run);

  // Reads a line, the program's name left out, and runs the callbacks of the commands it gives,
  // the innermost first; or prints the help it asks for. UsageError where the line is wrong.
  void parse(const std::vector<std::string>& arguments);
  // Whether the line that was read gives one of the commands below this one.
  bool command_given() const;
  // The command that was given, or this one.
  const CommandLine& given() const;

  // Without the hidden ones, in the order in which they were added.
  const std::vector<std::unique_ptr<CommandLine>>& commands() const { return commands_; }
  bool needs_command() const { return needs_command_; }
  std::vector<OptionSummary> options() const;
  std::string name() const;
  std::string path() const { return path_; }  // "trireme data pack"
  std::string description() const;
  const std::string& usage() const { return usage_; }    // empty: as the options say
  const std::string& footer() const { return footer_; }  // as given to footer()

 private:
  CommandLine(CLI::App& app, std::string path);

  std::unique_ptr<CommandLine> make_command(const std::string& name,
                                            const std::string& description);
  const CommandLine* find_command(const std::string& name) const;
  void check_commands(const std::vector<std::string>& arguments) const;
  std::string unexpected_argument() const;

  std::unique_ptr<CLI::App> own_;  // the program's
  CLI::App& app_;
  std::string path_;
  std::string usage_;
  std::string footer_;
  bool needs_command_ = false;
  std::vector<std::unique_ptr<CommandLine>> commands_;
  std::vector<std::unique_ptr<CommandLine>> hidden_commands_;
};

}  // namespace trireme
