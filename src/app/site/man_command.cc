#include "src/app/site/man_command.h"

#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

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

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) {
    return !command->get_name().empty() && !command->get_group().empty();
  });
}

std::string option_text(const CLI::Option& option) {
  std::string head = option.get_positional() ? option.get_name(true) : option.get_name(false, true);
  std::replace(head.begin(), head.end(), ',', ' ');
  const std::string type = option.get_type_name();
  if (!option.get_positional() && option.get_expected_min() > 0 && !type.empty()) {
    head += " " + type;
  }
  std::string text = option.get_description();
  if (!option.get_default_str().empty()) {
    text += fmt::format(" [{}]", option.get_default_str());
  }
  return fmt::format(".TP\n.B {}\n{}\n", roff(head), roff(text.empty() ? "see the example" : text));
}

std::string synopsis(const CLI::App& app, const std::string& name) {
  std::string line = fmt::format(".B {}\n", roff(name));
  if (!commands_of(app).empty()) {
    return line + ".I COMMAND\n[options]\n";
  }
  line += "[options]\n";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) {
      const bool required = option->get_required();
      const bool several = option->get_items_expected_max() > 1;
      line += fmt::format("{}{}{}{}\n", required ? "" : "[", roff(option->get_name(true)),
                          several ? " ..." : "", required ? "" : "]");
    }
  }
  return line;
}

std::string options_text(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    text += option_text(*option);
  }
  return text;
}

std::string footer_text(const CLI::App& app) {
  const std::string footer = app.get_footer();
  return footer.empty() ? "" : fmt::format(".PP\n.nf\n{}\n.fi\n", roff(footer));
}

// The commands of a command, each with its options.
std::string commands_text(const CLI::App& app, const std::string& name) {
  std::string text;
  for (const CLI::App* command : commands_of(app)) {
    const std::string full = name + " " + command->get_name();
    text += fmt::format(".SS {}\n{}.PP\n{}\n", roff(full), synopsis(*command, full),
                        roff(command->get_description()));
    text += options_text(*command) + footer_text(*command);
    text += commands_text(*command, full);
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

std::string program_page(const CLI::App& app) {
  std::string text = head("trireme", app.get_description());
  text += ".SH SYNOPSIS\n" + synopsis(app, "trireme") + ".SH COMMANDS\n";
  for (const CLI::App* command : commands_of(app)) {
    text += fmt::format(".TP\n.BR {} ({})\n{}\n", roff("trireme-" + command->get_name()), kSection,
                        roff(command->get_description()));
  }
  return text + ".SH OPTIONS\n" + options_text(app) + footer_text(app) + exit_codes_text();
}

std::string command_page(const CLI::App& command) {
  const std::string name = "trireme " + command.get_name();
  std::string text = head("trireme-" + command.get_name(), command.get_description());
  text += ".SH SYNOPSIS\n" + synopsis(command, name) + ".SH OPTIONS\n" + options_text(command);
  text += footer_text(command);
  if (const std::string own = commands_text(command, name); !own.empty()) {
    text += ".SH COMMANDS\n" + own;
  }
  return text + exit_codes_text() + ".SH SEE ALSO\n.BR trireme (1)\n";
}

void man(const CLI::App& app, const std::string& command, const std::string& folder) {
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

std::map<std::string, std::string> man_pages(const CLI::App& app) {
  std::map<std::string, std::string> pages = {{"trireme.1", program_page(app)}};
  for (const CLI::App* command : commands_of(app)) {
    pages[fmt::format("trireme-{}.1", command->get_name())] = command_page(*command);
  }
  return pages;
}

void add_man_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("man", "Print the manual page of a command");
  const auto name = std::make_shared<std::string>();
  const auto folder = std::make_shared<std::string>();
  command->add_option("COMMAND", *name, "train, data, ...; the program's own page without it");
  command->add_option("--all", *folder, "write all pages into this folder");
  command->footer("Example:\n  trireme man launch | man -l -\n  trireme man --all share/man/man1");
  command->callback([&app, name, folder] { man(app, *name, *folder); });
}

}  // namespace trireme
