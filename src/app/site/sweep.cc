#include "src/app/site/sweep.h"

#include <algorithm>

#include "src/base/error.h"

namespace trireme {
namespace {

// Splits "a,[b,c],d" into a | [b,c] | d.
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<std::string> values_of(const std::string& axis) {
  const std::size_t equals = axis.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError(fmt::format("--array {}: expected KEY=VALUE,VALUE,...", axis));
  }
  const std::string key = axis.substr(0, equals + 1);
  std::vector<std::string> all;
  for (const std::string& value : split(axis.substr(equals + 1))) {
    if (value.empty()) {
      throw ConfigError(fmt::format("--array {}: a value is empty", axis));
    }
    if (std::find(all.begin(), all.end(), key + value) != all.end()) {
      throw ConfigError(fmt::format(
          "--array {}: {} is given twice, which would start two identical runs", axis, value));
    }
    all.push_back(key + value);
  }
  return all;
}

}  // namespace

std::vector<std::vector<std::string>> combinations(const std::vector<std::string>& axes,
                                                   std::size_t most) {
  std::vector<std::vector<std::string>> all;
  for (const std::string& axis : axes) {
    const std::vector<std::string> values = values_of(axis);
    if (all.empty()) {
      all.emplace_back();
    }
    std::vector<std::vector<std::string>> more;
    for (const auto& combination : all) {
      for (const std::string& value : values) {
        more.push_back(combination);
        more.back().push_back(value);
      }
      if (more.size() > most) {
        throw ConfigError(fmt::format("--array: more than {} combinations", most));
      }
    }
    all = std::move(more);
  }
  return all;
}

}  // namespace trireme
