#include "src/app/site/completion_command.h"

#include <memory>
#include <sstream>
#include <vector>

#include <fmt/core.h>

namespace trireme {
namespace {

// A Candidate is a word that may come next, with its description.
struct Candidate {
  std::string word;
  std::string description;
};

// CompletedCommand is a command, identified by its path such as " bench step", with the words that
// may follow it.
struct CompletedCommand {
  std::string path;
  std::vector<Candidate> commands;
  std::vector<Candidate> options;
};

std::vector<Candidate> options_of(const CommandLine& command) {
  std::vector<Candidate> options;
  for (const OptionSummary& option : command.shown_options()) {
    std::istringstream names(option.positional ? "" : option.names);
    for (std::string name; std::getline(names >> std::ws, name, ',');) {
      options.push_back({name, option.description});
    }
  }
  return options;
}

void collect(const CommandLine& command, const std::string& path,
             std::vector<CompletedCommand>& places) {
  CompletedCommand place{path, {}, options_of(command)};
  for (const auto& below : command.commands()) {
    place.commands.push_back({below->name(), below->description()});
  }
  places.push_back(std::move(place));
  for (const auto& below : command.commands()) {
    collect(*below, path + " " + below->name(), places);
  }
}

std::vector<CompletedCommand> places_of(const CommandLine& app) {
  std::vector<CompletedCommand> places;
  collect(app, "", places);
  return places;
}

// Quotes text with single quotes, which both shells understand.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return out + "'";
}

// Returns the cases of the shell script that walk from command to subcommand. After "--" another
// command of trireme follows, as in `trireme launch -- train run.yaml`.
std::string steps_of(const std::vector<CompletedCommand>& places) {
  std::string steps = "      *' --') at= ;;\n";
  for (const CompletedCommand& place : places) {
    if (!place.path.empty()) {
      steps += fmt::format("      {0}) at={0} ;;\n", quoted(place.path));
    }
  }
  return steps;
}

std::string bash_words(const CompletedCommand& place) {
  std::string words;
  for (const auto* const list : {&place.commands, &place.options}) {
    for (const Candidate& each : *list) {
      words += (words.empty() ? "" : " ") + each.word;
    }
  }
  return words;
}

// Formats 'word:description' for zsh's _describe, which expects a backslash before further colons.
std::string zsh_words(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& each : candidates) {
    std::string description;
    for (const char c : each.description) {
      description += c == ':' ? std::string("\\:") : std::string(1, c);
    }
    text += fmt::format("        {}\n", quoted(each.word + ":" + description));
  }
  return text;
}

// Quotes text with single quotes for fish, where a backslash in them is special, too.
std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return out + "'";
}

// Formats the calls of fish's `complete` for what may follow one command. Files complete where no
// command must follow.
std::string fish_calls(const std::string& program, const CompletedCommand& place) {
  std::string calls;
  const auto add = [&](const std::string& what, const Candidate& each) {
    calls += fmt::format("complete -c {0} -n {1} {2} -d {3}\n", program,
                         fish_quoted(fmt::format("__{}_at {}", program, fish_quoted(place.path))),
                         what, fish_quoted(each.description));
  };
  for (const Candidate& each : place.commands) {
    add("-f -a " + each.word, each);
  }
  for (const Candidate& each : place.options) {
    add(each.word.starts_with("--") ? "-l " + each.word.substr(2) : "-s " + each.word.substr(1),
        each);
  }
  return calls;
}

void complete(const CommandLine& app, const std::string& shell) {
  fmt::print("{}", shell == "bash"  ? bash_completion(app)
                   : shell == "zsh" ? zsh_completion(app)
                                    : fish_completion(app));
}

}  // namespace

std::string bash_completion(const CommandLine& app) {
  const std::vector<CompletedCommand> places = places_of(app);
  std::string cases;
  for (const CompletedCommand& place : places) {
    cases += fmt::format("    {}) words={} ;;\n", quoted(place.path), quoted(bash_words(place)));
  }
  return fmt::format(
      "# bash completion for {0}; made by `{0} completion bash`\n"
      "_{0}() {{\n"
      "  local at= words= word\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \"$at $word\" in\n"
      "{1}"
      "    esac\n"
      "  done\n"
      "  case $at in\n"
      "{2}"
      "  esac\n"
      "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${{COMP_WORDS[COMP_CWORD]}}\")\n"
      "}}\n"
      "# File names complete where no command or option does.\n"
      "complete -o default -F _{0} {0}\n",
      app.name(), steps_of(places), cases);
}

std::string zsh_completion(const CommandLine& app) {
  const std::vector<CompletedCommand> places = places_of(app);
  std::string cases;
  for (const CompletedCommand& place : places) {
    cases += fmt::format("    {})\n      commands=(\n{}      )\n      options=(\n{}      ) ;;\n",
                         quoted(place.path), zsh_words(place.commands), zsh_words(place.options));
  }
  return fmt::format(
      "#compdef {0}\n"
      "# zsh completion for {0}; made by `{0} completion zsh`\n"
      "_{0}() {{\n"
      "  local at= word\n"
      "  local -a commands options\n"
      "  for word in \"${{(@)words[2,CURRENT-1]}}\"; do\n"
      "    case \"$at $word\" in\n"
      "{1}"
      "    esac\n"
      "  done\n"
      "  case $at in\n"
      "{2}"
      "  esac\n"
      "  if [[ $PREFIX == -* ]]; then\n"
      "    _describe option options\n"
      "  elif (( $#commands )); then\n"
      "    _describe command commands\n"
      "  else\n"
      "    _files\n"
      "  fi\n"
      "}}\n"
      "_{0} \"$@\"\n",
      app.name(), steps_of(places), cases);
}

std::string fish_completion(const CommandLine& app) {
  const std::vector<CompletedCommand> places = places_of(app);
  std::string steps;
  std::string calls;
  for (const CompletedCommand& place : places) {
    if (!place.path.empty()) {
      steps += fmt::format("      case {0}\n        set at {0}\n", fish_quoted(place.path));
    }
    calls += fish_calls(app.name(), place);
  }
  return fmt::format(
      "# fish completion for {0}; made by `{0} completion fish`\n"
      "# Tells whether the words before the cursor lead to the given command.\n"
      "function __{0}_at\n"
      "  set -l at ''\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  for word in $words\n"
      "    switch \"$at $word\"\n"
      "      case '* --'\n"
      "        set at ''\n"
      "{1}"
      "    end\n"
      "  end\n"
      "  test \"$at\" = $argv[1]\n"
      "end\n"
      "{2}",
      app.name(), steps, calls);
}

void add_completion_command(CommandLine& app) {
  CommandLine& command = app.add_command("completion", "Print the completion script for a shell");
  const auto shell = std::make_shared<std::string>();
  command.add_option("SHELL", *shell, "The shell: bash, zsh or fish")
      .required()
      .check(one_of({"bash", "zsh", "fish"}));
  command.footer(
      "Example:\n  source <(trireme completion bash)\n"
      "`cmake --install` and the Debian package install all scripts.");
  command.callback([&app, shell] { complete(app, *shell); });
}

}  // namespace trireme
