#include "src/app/site/man_command.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/version.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

constexpr const char* kSection = "1";

struct ExitMeaning {
  ExitCode code;
  const char* text;
};

// docs/exit-codes.md
constexpr std::array kExitCodes = {
    ExitMeaning{ExitCode::ok, "finished"},
    ExitMeaning{ExitCode::usage, "usage or configuration: fix it"},
    ExitMeaning{ExitCode::diverged, "numerical divergence"},
    ExitMeaning{ExitCode::below_threshold, "measured below the asked threshold"},
    ExitMeaning{ExitCode::bad_data, "bad data: a dataset, or every checkpoint, is damaged"},
    ExitMeaning{ExitCode::not_found, "input not found"},
    ExitMeaning{ExitCode::io, "I/O error, disk full"},
    ExitMeaning{ExitCode::requeue, "saved, please requeue"},
    ExitMeaning{ExitCode::device, "device or node fault, out of memory"},
    ExitMeaning{ExitCode::refused, "refused by permission or policy"},
    ExitMeaning{ExitCode::hang, "hang or lost peer: relaunch"},
    ExitMeaning{ExitCode::no_progress, "no progress in 3 relaunches: do not requeue"},
};

// Text, so that roff shows exactly that: no escapes, no requests, plain minus signs and quotes.
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

std::string option_text(const OptionSummary& option) {
  std::string head = option.names;
  std::replace(head.begin(), head.end(), ',', ' ');
  if (!option.type.empty()) {
    head += " " + option.type;
  }
  std::string text = option.description;
  if (!option.default_value.empty()) {
    text += fmt::format(" [{}]", option.default_value);
  }
  return fmt::format(".TP\n.B {}\n{}\n", roff(head), roff(text.empty() ? "see the example" : text));
}

std::string synopsis(const CommandLine& app, const std::string& name) {
  std::string line = fmt::format(".B {}\n", roff(name));
  if (!app.commands().empty()) {
    return line + ".I COMMAND\n[options]\n";
  }
  line += "[options]\n";
  for (const OptionSummary& option : app.options()) {
    if (option.positional) {
      line += fmt::format("{}{}{}{}\n", option.required ? "" : "[", roff(option.names),
                          option.several ? " ..." : "", option.required ? "" : "]");
    }
  }
  return line;
}

std::string options_text(const CommandLine& app) {
  std::string text;
  for (const OptionSummary& option : app.options()) {
    text += option_text(option);
  }
  return text;
}

std::string footer_text(const CommandLine& app) {
  const std::string footer = app.footer();
  return footer.empty() ? "" : fmt::format(".PP\n.nf\n{}\n.fi\n", roff(footer));
}

// The commands of a command, each with its options.
std::string commands_text(const CommandLine& app, const std::string& name) {
  std::string text;
  for (const auto& below : app.commands()) {
    const std::string full = name + " " + below->name();
    text += fmt::format(".SS {}\n{}.PP\n{}\n", roff(full), synopsis(*below, full),
                        roff(below->description()));
    text += options_text(*below) + footer_text(*below);
    text += commands_text(*below, full);
  }
  return text;
}

std::string exit_codes_text() {
  std::string text = ".SH EXIT STATUS\n";
  for (const ExitMeaning& each : kExitCodes) {
    text += fmt::format(".TP\n.B {}\n{}\n", static_cast<int>(each.code), roff(each.text));
  }
  return text;
}

std::string head(const std::string& page, const std::string& about) {
  return fmt::format(".TH {} {} \"\" \"trireme {}\" \"Trireme\"\n.SH NAME\n{} \\- {}\n", roff(page),
                     kSection, version_json().at("version").get<std::string>(), roff(page),
                     roff(about));
}

std::string program_page(const CommandLine& app) {
  std::string text = head("trireme", app.description());
  text += ".SH SYNOPSIS\n" + synopsis(app, "trireme") + ".SH COMMANDS\n";
  for (const auto& below : app.commands()) {
    text += fmt::format(".TP\n.BR {} ({})\n{}\n", roff("trireme-" + below->name()), kSection,
                        roff(below->description()));
  }
  return text + ".SH OPTIONS\n" + options_text(app) + footer_text(app) + exit_codes_text();
}

std::string command_page(const CommandLine& command) {
  const std::string name = "trireme " + command.name();
  std::string text = head("trireme-" + command.name(), command.description());
  text += ".SH SYNOPSIS\n" + synopsis(command, name) + ".SH OPTIONS\n" + options_text(command);
  text += footer_text(command);
  if (const std::string own = commands_text(command, name); !own.empty()) {
    text += ".SH COMMANDS\n" + own;
  }
  return text + exit_codes_text() + ".SH SEE ALSO\n.BR trireme (1)\n";
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
  const std::string page = command.empty() ? "trireme.1" : fmt::format("trireme-{}.1", command);
  const auto found = pages.find(page);
  if (found == pages.end()) {
    throw ConfigError(fmt::format("there is no command '{}': see trireme --help", command));
  }
  fmt::print("{}", found->second);
}

}  // namespace

std::map<std::string, std::string> man_pages(const CommandLine& app) {
  std::map<std::string, std::string> pages = {{"trireme.1", program_page(app)}};
  for (const auto& below : app.commands()) {
    pages[fmt::format("trireme-{}.1", below->name())] = command_page(*below);
  }
  return pages;
}

void add_man_command(CommandLine& app) {
  CommandLine& command = app.add_command("man", "Print the manual page of a command");
  const auto name = std::make_shared<std::string>();
  const auto folder = std::make_shared<std::string>();
  command.add_option("COMMAND", *name, "train, data, ...; the program's own page without it");
  command.add_option("--all", *folder, "write all pages into this folder");
  command.footer("Example:\n  trireme man launch | man -l -\n  trireme man --all share/man/man1");
  command.callback([&app, name, folder] { man(app, *name, *folder); });
}

}  // namespace trireme
