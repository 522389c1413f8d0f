// The command line declares the commands of the program and their arguments once, for parsing,
// --help (help_text.h) and manual pages (man_command.h). The program has a CommandLine, which owns
// one for each of its commands. The variables that receive values must outlive parse(). Parsing is
// done by CLI11, whose header only command_line.cc and written_files.cc include, since it compiles
// slowly.
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

// The command line is wrong. what() names the command and the argument, and says how to get help.
struct UsageError : ConfigError {
  using ConfigError::ConfigError;
};

// A Check is a condition on a value.
struct Check {
  std::string words;  // the allowed words for --help, such as "rye|oat"; otherwise empty
  // Returns what is wrong with a value as typed, or "".
  std::function<std::string(const std::string&)> complaint;
};
Check one_of(std::vector<std::string> names);
Check within(int low, int high);
Check within(double low, double high);
Check positive_number();
Check non_negative_number();

// Sets further properties of an option that is being added. --help shows the initial value of its
// variable as the default, unless the option is required, the value is an empty text or a list,
// or the description itself says "(default: ...)".
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(option) {}
  Option& required();
  Option& check(Check values);
  // Keeps --help from showing a default, for an initial value that means "not given".
  Option& no_default();
  // Omits it from help, manual pages and completions, for one that its command refuses with a
  // message of its own.
  Option& hidden();
  // Sets the placeholder of its values in --help, such as FILE or BYTES. The default is N, NUMBER,
  // PATH or TEXT, by the type of the variable.
  Option& type_name(const std::string& name);
  // Sets how many values it takes.
  Option& expected(int count);
  // Allows several values in one word, separated by this character. An empty one is refused.
  Option& delimiter(char between);
  // Says that its value is a file that the command writes. A line that names this file a second
  // time, to write or to read it, is wrong.
  Option& written();
  // Makes each use take one value only, instead of all words up to the next option. A value in
  // square brackets then keeps them; otherwise it counts as a list of values between commas.
  Option& one_value_per_use();

 private:
  CLI::Option& option_;
};

// Describes an option as shown by --help and manual pages.
struct OptionSummary {
  std::string names;  // "-o, --out", or "INPUT" for a positional argument
  // Type of its values: "N" or "rye|oat"; empty for flags and positional arguments.
  std::string type;
  std::string description;
  std::string default_value;  // empty if not shown
  bool positional = false;
  bool required = false;
  bool several = false;  // whether it takes more than one value
  char delimiter = 0;    // between several values in one word, if it takes these
};

class CommandLine {
 public:
  // Makes the command line of the program. At most one of its commands can be given.
  CommandLine(const std::string& description, const std::string& name);
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CommandLine& add_command(const std::string& name, const std::string& description);
  // Adds a command that the program starts by itself. Help and manual pages omit it.
  CommandLine& add_hidden_command(const std::string& name, const std::string& description);
  // Makes it an error to give none of the commands.
  void require_command();
  // Replaces the usage that --help shows after the command's name, for example by "[OPTION]... --
  // train CONFIG".
  void usage(const std::string& arguments) { usage_ = arguments; }
  // names: "-o,--out", or a name without dashes for a positional argument.
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
  // Sets the text below the options: a line "Example:" or "Examples:" followed by the examples,
  // which are indented by two spaces; and sentences, which are wrapped to the width of the page.
  void footer(const std::string& text) { footer_ = text; }
  // Sets the function that runs the command once the whole line is parsed.
  void callback(std::function<void()> run);

  // Parses a command line without the program's name and runs the callbacks of the commands given,
  // the innermost first; or prints the help that was requested. Throws UsageError if the line is
  // wrong.
  void parse(const std::vector<std::string>& arguments);
  // Returns what is wrong with a command line, as parse() would say it in its first line, or "".
  // Runs no callback and prints nothing. Values of options are written to their variables, and a
  // line that asks for help is not checked further. Called on the program's command line.
  std::string usage_problem(const std::vector<std::string>& arguments);
  // Returns whether the parsed line gives one of the commands below this one.
  bool command_given() const;
  // Returns the innermost command that was given, or this one.
  const CommandLine& given() const;

  // Returns the commands except the hidden ones, in the order in which they were added.
  const std::vector<std::unique_ptr<CommandLine>>& commands() const { return commands_; }
  bool needs_command() const { return needs_command_; }
  std::vector<OptionSummary> options(bool with_hidden = true) const;
  std::vector<OptionSummary> shown_options() const { return options(false); }
  // Returns the options, such as "-o" and "--out", of this command and of the commands below it
  // that the arguments name. Behind "--", they name those of the program again.
  std::vector<std::string> option_names(const std::vector<std::string>& arguments) const;
  std::string name() const;
  std::string path() const { return path_; }  // such as "trireme data pack"
  std::string description() const;
  const std::string& usage() const { return usage_; }    // empty if it follows from the options
  const std::string& footer() const { return footer_; }  // the text passed to footer()

 private:
  CommandLine(CLI::App& app, std::string path, CommandLine& top);

  std::unique_ptr<CommandLine> make_command(const std::string& name,
                                            const std::string& description);
  const CommandLine* find_command(const std::string& name) const;
  void check_commands(const std::vector<std::string>& arguments) const;
  void check_lists(const std::vector<std::string>& arguments) const;
  std::string unexpected_argument() const;
  // Returns whether help was asked for. Throws UsageError.
  bool asks_for_help(const std::vector<std::string>& arguments);

  std::unique_ptr<CLI::App> own_;  // set for the program's command line only
  CLI::App& app_;
  CommandLine& top_;          // the program's command line
  bool only_checks_ = false;  // whether callbacks do nothing; used of the program's command line
  std::string path_;
  std::string usage_;
  std::string footer_;
  bool needs_command_ = false;
  std::vector<std::unique_ptr<CommandLine>> commands_;
  std::vector<std::unique_ptr<CommandLine>> hidden_commands_;
};

}  // namespace trireme
