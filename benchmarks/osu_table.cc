#include "benchmarks/osu_table.h"

#include <fmt/core.h>

namespace trireme {
namespace {

constexpr int kLoneValueWidth = 17;  // of a row without a size

}  // namespace

std::string osu_title(std::string_view test, std::string_view datatype) {
  return fmt::format("# OSU MPI {} Test v7.4\n# Datatype: {}.\n", test, datatype);
}

std::string osu_columns(std::string_view value, bool has_size, bool checks) {
  const std::string first =
      has_size ? fmt::format("{:<{}}{:>{}}", "# Size", kOsuSizeWidth, value, kOsuValueWidth)
               : fmt::format("# {}", value);
  return first + (checks ? fmt::format("{:>{}}", "Validation", kOsuValueWidth) : "") + "\n";
}

std::string osu_row(std::optional<std::int64_t> bytes, double value,
                    std::optional<std::int64_t> wrong) {
  const std::string first =
      bytes ? fmt::format("{:<{}}{:>{}.2f}", *bytes, kOsuSizeWidth, value, kOsuValueWidth)
            : fmt::format("{:>{}.2f}", value, kLoneValueWidth);
  return first +
         (wrong ? fmt::format("{:>{}}", *wrong == 0 ? "Pass" : "Fail", kOsuValueWidth) : "") + "\n";
}

}  // namespace trireme
