#include "src/app/command/written_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/train/start/run_place.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// CLI11 would show groups in its own help, which this program does not use.
constexpr const char* kWrittenGroup = "written";

bool is_same_file(const std::string& one, const std::string& other) {
  std::error_code code;
  if (fs::equivalent(one, other, code) && !code) {
    return fs::is_regular_file(one, code);
  }
  return !one.empty() && fs::weakly_canonical(one, code) == fs::weakly_canonical(other, code) &&
         !fs::exists(one, code);
}

}  // namespace

void mark_as_written(CLI::Option& option) { option.group(kWrittenGroup); }

std::string clash_of_written_files(const CLI::App& command) {
  for (const CLI::Option* written : command.get_options()) {
    if (written->get_group() != kWrittenGroup || written->count() == 0) {
      continue;
    }
    const std::string file = written->results().front();
    for (const CLI::Option* other : command.get_options()) {
      for (const std::string& value : other->results()) {
        if (other != written && is_same_file(file, value)) {
          return fmt::format(
              "{} and {} are the same file, {}, which would be replaced: name another file",
              written->get_name(), other->get_name(), printable(file));
        }
      }
    }
    if (const std::string problem = problem_with_place_of_result(file); !problem.empty()) {
      return fmt::format("{}: {} {}: name another file", written->get_name(), printable(file),
                         printable(problem));
    }
  }
  return "";
}

void check_not_read(const std::vector<WrittenFile>& written, const std::vector<fs::path>& read) {
  for (const WrittenFile& each : written) {
    for (const fs::path& input : read) {
      if (is_same_file(each.file, input)) {
        throw ConfigError(fmt::format(
            "{} {}: the same command reads this file, which would be replaced: name another file",
            each.option, each.file.string()));
      }
    }
  }
}

void check_outside_of(const WrittenFile& result, const fs::path& folder, std::string_view why) {
  const auto whole = [](const fs::path& path) {
    std::error_code none;
    const fs::path place = fs::weakly_canonical(fs::absolute(path, none), none);
    return place.has_filename() ? place : place.parent_path();
  };
  const fs::path inner = whole(result.file);
  const fs::path outer = whole(folder);
  const auto [end, rest] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  if (!result.file.empty() && !folder.empty() && end == outer.end()) {
    throw ConfigError(fmt::format("{} {} lies in {}, {}: choose a path outside of it",
                                  result.option, result.file.string(), folder.string(), why));
  }
}

}  // namespace trireme
