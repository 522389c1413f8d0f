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

// Returns whether a name without a folder is that of a program in PATH.
bool is_in_path(const std::string& name) {
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
  // A name with a folder may be right, and its file system not mounted: that is the machine's
  // fault.
  const std::string launcher = demands.start.empty() ? "" : demands.start.front();
  if (!launcher.empty() && launcher.find_first_of("/{") == std::string::npos &&
      !is_in_path(launcher)) {
    throw ConfigError(
        fmt::format("{}.start: there is no program '{}' in the PATH of this node", key, launcher));
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
  return measures.usage_problem(arguments);
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
