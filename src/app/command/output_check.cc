#include "src/app/command/output_check.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/train/start/run_place.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

bool is_below(const fs::path& path, const fs::path& folder) {
  const auto [left, right] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return left == folder.end() || (std::next(left) == folder.end() && left->empty());
}

}  // namespace

void check_output(const std::string& out, const std::vector<std::string>& inputs) {
  if (const std::string problem = problem_with_place_of_result(out); !problem.empty()) {
    throw ConfigError(fmt::format("-o {} {}: name another file", out, problem));
  }
  std::error_code none;
  if (!fs::exists(out, none)) {
    return;
  }
  const fs::path suffix = fs::path(out).extension();
  const bool was_made = suffix == ".html" || suffix == ".md" || suffix == ".tar";
  const fs::path whole = fs::weakly_canonical(out, none);
  for (const std::string& input : inputs) {
    const bool same = fs::equivalent(out, input, none);
    const bool inside = !was_made && fs::is_directory(input, none) &&
                        is_below(whole, fs::weakly_canonical(input, none));
    if ((same && !fs::is_directory(input, none)) || inside) {
      throw ConfigError(fmt::format(
          "-o {} would replace {}: name another file", out,
          same ? "a file that this command reads" : fmt::format("a file of {}", input)));
    }
  }
}

}  // namespace trireme
