#include "src/app/study/measure_check.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include <fmt/format.h>
#include <unistd.h>

#include "benchmarks/command/bench_command.h"
#include "src/app/site/health_command.h"
#include "src/base/error.h"

namespace trireme {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(word);
  }
  return words;
}

void forget_callbacks(const CommandLine& line) {
  for (const auto& command : line.commands()) {
    command->callback([] {});
    forget_callbacks(*command);
  }
}

// Returns whether execvp() would find the program.
bool is_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    return ::access(name.c_str(), X_OK) == 0;
  }
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access(((folder.empty() ? "." : folder) + "/" + name).c_str(), X_OK) == 0) {
      return true;
    }
  }
  return false;
}

void check_demands(const AcceptProfile::Demands& demands, double seconds, const std::string& key,
                   const UsageCheck& check) {
  if (demands.measures.empty()) {
    return;
  }
  if (!demands.start.empty() && !is_program(demands.start.front())) {
    throw ConfigError(fmt::format("{}.start: there is no program '{}' on this machine", key,
                                  demands.start.front()));
  }
  for (const std::string& measure : demands.measures) {
    const std::vector<std::string> arguments = measure_arguments(measure, seconds, "FILE");
    if (const std::string problem = check(arguments); !problem.empty()) {
      throw ConfigError(fmt::format("{}.measures: '{}' cannot be started as `trireme {}`: {}", key,
                                    measure, fmt::join(arguments, " "), problem));
    }
  }
}

}  // namespace

std::vector<std::string> measure_arguments(const std::string& measure, double seconds,
                                           const std::string& file) {
  std::vector<std::string> words = words_of(measure);
  if (words.front() == "health") {
    words.insert(words.end(), {"--json", "--seconds", fmt::format("{:g}", seconds)});
  } else {
    words.insert(words.begin(), "bench");
    words.insert(words.end(), {"-J", file});
  }
  return words;
}

std::string measure_problem(AppContext& context, const std::vector<std::string>& arguments) {
  for (const char* const help : {"-h", "--help"}) {
    if (std::find(arguments.begin(), arguments.end(), help) != arguments.end()) {
      return fmt::format("{} measures nothing", help);
    }
  }
  CommandLine measures("", "trireme");
  add_bench_command(measures, context);
  add_health_command(measures, context.exit_code);
  forget_callbacks(measures);
  try {
    measures.parse(arguments);
  } catch (const UsageError& error) {
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
  return "";
}

void check_measures(const AcceptProfile& profile, const std::string& file,
                    const UsageCheck& check) {
  try {
    check_demands(profile.node, profile.seconds, "node", check);
    check_demands(profile.link, profile.seconds, "link", check);
  } catch (const ConfigError& error) {
    throw ConfigError(fmt::format("{}: {}", file, error.what()));
  }
}

}  // namespace trireme
