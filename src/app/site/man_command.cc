#include "src/app/site/man_command.h"

#include <algorithm>
#include <cctype>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/command/help_text.h"
#include "src/app/command/version.h"
#include "src/app/site/man_facts.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/train/run/run_config.h"

namespace trireme {
namespace {

constexpr const char* kConfigPage = "trireme.yaml";

// Escapes text so that roff shows it unchanged: without requests or escapes, and with plain minus
// signs and quotes.
std::string roff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) {
      out += "\\&";
    }
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
    line_start = c == '\n';
  }
  return out;
}

std::string entry(const std::string& head, const std::string& text) {
  return fmt::format(".TP\n.B {}\n{}\n", roff(head), roff(text));
}

std::string option_text(const OptionSummary& option) {
  return entry(option.type.empty() ? option.names : option.names + " " + option.type,
               option_description(option) + ".");
}

std::string section(const char* name, const std::string& text) {
  return text.empty() ? "" : fmt::format(".SH {}\n{}", name, text);
}

std::string entries(const std::vector<ManEntry>& all) {
  std::string text;
  for (const ManEntry& each : all) {
    text += entry(each.name, each.text);
  }
  return text;
}

std::string synopsis_line(const std::string& path, const std::string& arguments) {
  return fmt::format(".B {}\n{}\n.br\n", roff(path), roff(arguments));
}

// Returns a line for each command below this one, and for the command itself if it can be given
// alone.
std::string synopsis(const CommandLine& command) {
  std::string text =
      command.needs_command() ? "" : synopsis_line(command.path(), usage_arguments(command));
  for (const auto& below : command.commands()) {
    text += synopsis(*below);
  }
  return text;
}

// with_help: whether to describe --help, which a page does only once.
std::string options_text(const CommandLine& command, bool with_help = true) {
  std::string text;
  for (const OptionSummary& option : command.shown_options()) {
    text += with_help || option.names != "-h, --help" ? option_text(option) : "";
  }
  return text;
}

std::string notes_text(const CommandLine& command) {
  std::string notes = footer_of(command).notes;
  for (std::size_t at = notes.find("\n\n"); at != std::string::npos; at = notes.find("\n\n")) {
    notes.replace(at, 2, "\n.PP\n");
  }
  return notes.empty() ? "" : ".PP\n" + roff(notes);
}

// Describes the commands of a command, each with its options.
std::string commands_text(const CommandLine& command) {
  std::string text;
  for (const auto& below : command.commands()) {
    text += fmt::format(".SS {}\n{}.\n", roff(below->path()), roff(below->description()));
    text += notes_text(*below) + options_text(*below, false) + commands_text(*below);
  }
  return text;
}

std::string example_lines(const CommandLine& command) {
  std::string text = footer_of(command).examples;
  for (const auto& below : command.commands()) {
    const std::string more = example_lines(*below);
    text += (text.empty() || more.empty() ? "" : "\n") + more;
  }
  return text;
}

std::string examples_section(const std::string& lines) {
  return lines.empty() ? "" : fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", roff(lines));
}

std::string head(const std::string& page, int number, const std::string& about) {
  return fmt::format(".TH {} {} \"\" \"trireme {}\" \"Trireme\"\n.SH NAME\n{} \\- {}\n", roff(page),
                     number, version_json().at("version").get<std::string>(), roff(page),
                     roff(about));
}

// Formats a reference to a page, with `after` as the separator from the next one.
std::string reference(const std::string& page, int number, const char* after) {
  return fmt::format(".BR {} ({}){}\n", roff(page), number, after);
}

std::string program_page(const CommandLine& app) {
  std::string text = head("trireme", 1, app.description());
  text += ".SH SYNOPSIS\n" + synopsis_line("trireme", "COMMAND [ARGUMENT]...") +
          synopsis_line("trireme --version", "[--json] [--sbom cyclonedx|spdx]");
  text += ".SH DESCRIPTION\n" + roff(app.description()) + ".\n" + notes_text(app);
  std::string commands;
  for (const auto& below : app.commands()) {
    commands += fmt::format(".TP\n.BR {} (1)\n{}\n", roff("trireme-" + below->name()),
                            roff(below->description() + "."));
  }
  text += section("COMMANDS", commands) + section("OPTIONS", options_text(app));
  text += section("ENVIRONMENT", entries(environment_of(""))) +
          section("FILES", entries(files_of(""))) +
          section("EXIT STATUS", entries(exit_statuses()));
  text += examples_section(footer_of(app).examples);
  return text + ".SH SEE ALSO\n" + reference("trireme-train", 1, ",") +
         reference("trireme-launch", 1, ",") + reference(kConfigPage, 5, "");
}

std::string command_page(const CommandLine& command) {
  std::string text = head("trireme-" + command.name(), 1, command.description());
  text += ".SH SYNOPSIS\n" + synopsis(command);
  text += ".SH DESCRIPTION\n" + roff(command.description()) + ".\n" + notes_text(command);
  text += section("OPTIONS", options_text(command));
  text += section("COMMANDS", commands_text(command));
  text += section("ENVIRONMENT", entries(environment_of(command.name()))) +
          section("FILES", entries(files_of(command.name()))) +
          section("EXIT STATUS", entries(exit_statuses()));
  text += examples_section(example_lines(command));
  return text + ".SH SEE ALSO\n" + reference("trireme", 1, ",") + reference(kConfigPage, 5, "");
}

// Capitalises the text unless it begins with a value of the key, as in "auto: ...".
std::string sentence(std::string text) {
  if (text.substr(0, text.find(' ')).back() != ':') {
    text.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(text.front())));
  }
  return text;
}

std::string config_page() {
  std::string text =
      head(kConfigPage, 5, "configuration of a training run") +
      ".SH DESCRIPTION\nA run is described by a YAML file. Values come from, in this order of "
      "precedence: the command line (train.steps=5), the environment "
      "(TRIREME_TRAIN__STEPS=5), the run\\(aqs file, the files in /etc/trireme, the model preset, "
      "and the defaults. An unknown key or a value that is not allowed is an error.\n";
  std::string group;
  for (const ResolvedKey& key : run_config_keys()) {
    const std::string own = key.key.substr(0, key.key.find('.'));
    if (own != group) {
      group = own;
      text += fmt::format(".SH {}\n", roff(group));
    }
    const std::string fallback = key.value.to_yaml();
    text += entry(key.key, fmt::format("{}. Allowed: {}. {}", sentence(key.doc), key.allowed,
                                       key.required ? "Required."
                                       : fallback.empty() || fallback == "\"\""
                                           ? "No default."
                                           : "Default: " + fallback + "."));
  }
  text += examples_section(
      "model: {preset: small-gpt2}\n"
      "data: {train: data/text/train, validation: data/text/validation}\n"
      "train: {steps: 2000, global_batch: 32, micro_batch: 4, eval_every: 200}\n"
      "optimizer: {lr: 6e-4, schedule: {warmup: 100}}\n"
      "checkpoint: {every: 200}\n"
      "run: {dir: runs/first}\n");
  return text + ".SH SEE ALSO\n" + reference("trireme-train", 1, ",") +
         reference("trireme-config", 1, "");
}

void man(const CommandLine& app, const std::string& command, const std::string& folder) {
  const std::map<std::string, std::string> pages = man_pages(app);
  if (!folder.empty()) {
    make_directories(folder);
    for (const auto& [name, text] : pages) {
      write_file_durably(std::filesystem::path(folder) / name, text);
    }
    return;
  }
  const std::string page = command.empty()          ? "trireme.1"
                           : command == kConfigPage ? "trireme.yaml.5"
                                                    : fmt::format("trireme-{}.1", command);
  const auto found = pages.find(page);
  if (found == pages.end()) {
    throw ConfigError(fmt::format(
        "there is no manual page of '{}': 'trireme --help' lists the commands", command));
  }
  fmt::print("{}", found->second);
}

void check_subcommand(const CommandLine& app, const std::string& name, const std::string& below) {
  const auto is_named = [](const std::string& wanted) {
    return [&wanted](const auto& command) { return command->name() == wanted; };
  };
  const auto& all = app.commands();
  const auto found = std::find_if(all.begin(), all.end(), is_named(name));
  if (below.empty() || found == all.end()) {
    return;
  }
  const auto& commands = (*found)->commands();
  if (std::none_of(commands.begin(), commands.end(), is_named(below))) {
    throw ConfigError(
        commands.empty()
            ? fmt::format("'{}' has no subcommands", name)
            : fmt::format("'{0}' has no subcommand '{1}': 'trireme {0} --help' lists them", name,
                          below));
  }
}

}  // namespace

std::map<std::string, std::string> man_pages(const CommandLine& app) {
  std::map<std::string, std::string> pages = {{"trireme.1", program_page(app)},
                                              {"trireme.yaml.5", config_page()}};
  for (const auto& below : app.commands()) {
    pages[fmt::format("trireme-{}.1", below->name())] = command_page(*below);
  }
  return pages;
}

void add_man_command(CommandLine& app) {
  CommandLine& command =
      app.add_command("man", "Print the manual page of a command or of a file format");
  const auto name = std::make_shared<std::string>();
  const auto below = std::make_shared<std::string>();
  const auto folder = std::make_shared<std::string>();
  command.add_option(
      "COMMAND", *name,
      "The command, or trireme.yaml for the configuration (default: the program's own page)");
  // The page of a command describes its subcommands, so this word needs no other page.
  command.add_option("SUBCOMMAND", *below, "One of its subcommands, which the same page describes");
  command.add_option("--all", *folder, "Write all pages into DIR").type_name("DIR");
  command.footer("Examples:\n  trireme man launch | man -l -\n  trireme man --all share/man/man1");
  command.callback([&app, name, below, folder] {
    check_subcommand(app, *name, *below);
    man(app, *name, *folder);
  });
}

}  // namespace trireme
