#include "src/app/site/sweep.h"

#include <algorithm>
#include <cstdlib>

#include "src/base/config_tree.h"
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

// Returns "0.001" for "1e-3", so that numbers can be compared; integers and words stay.
std::string as_compared(const std::string& item) {
  char* end = nullptr;
  const double number = std::strtod(item.c_str(), &end);
  const bool is_real = !item.empty() && *end == '\0' && item.find_first_of(".eE") != item.npos;
  return is_real ? fmt::format("{}", number) : item;
}

// Returns a text that two values share if they mean the same, such as 1e-3 and 0.001.
std::string meaning_of(const std::string& value) {
  std::string meaning;
  try {
    for (const ConfigEntry& entry : parse_config("value: " + value, "--array")) {
      meaning += entry.key + ":";
      for (const std::string& item : entry.value.items) {
        meaning += as_compared(item) + "\n";
      }
    }
  } catch (const ConfigError&) {
    return value;  // the check of the run's configuration says what is wrong
  }
  return meaning;
}

std::string key_of(const std::string& word) { return word.substr(0, word.find('=')); }

std::vector<std::string> values_of(const std::string& axis) {
  const std::size_t equals = axis.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw ConfigError(fmt::format("--array {}: expected KEY=VALUE,VALUE,...", axis));
  }
  const std::string key = axis.substr(0, equals + 1);
  std::vector<std::string> all;
  std::vector<std::string> meanings;
  for (const std::string& value : split(axis.substr(equals + 1))) {
    if (value.empty()) {
      throw ConfigError(fmt::format("--array {}: a value is empty", axis));
    }
    if (std::find(meanings.begin(), meanings.end(), meaning_of(value)) != meanings.end()) {
      throw ConfigError(fmt::format(
          "--array {}: {} is given twice, which would start two identical runs", axis, value));
    }
    all.push_back(key + value);
    meanings.push_back(meaning_of(value));
  }
  return all;
}

void refuse_repeated_keys(const std::vector<std::string>& axes,
                          const std::vector<std::string>& fixed) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto has_key = [&](const std::string& word) { return key_of(word) == key_of(axes[i]); };
    const auto before = axes.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::any_of(axes.begin(), before, has_key)) {
      throw ConfigError(
          fmt::format("--array {}: {} has an --array already: give all of its values "
                      "in one",
                      axes[i], key_of(axes[i])));
    }
    if (const auto word = std::find_if(fixed.begin(), fixed.end(), has_key); word != fixed.end()) {
      throw ConfigError(fmt::format("--array {}: {} would have no effect: leave one of them out",
                                    axes[i], *word));
    }
  }
}

}  // namespace

std::vector<std::vector<std::string>> combinations(const std::vector<std::string>& axes,
                                                   const std::vector<std::string>& fixed,
                                                   std::size_t most) {
  refuse_repeated_keys(axes, fixed);
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
