#include "src/nn/frozen_modules.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>

namespace trireme {
namespace {

// Takes the first component off `path`.
std::string_view next_component(std::string_view& path) {
  const std::size_t dot = std::min(path.find('.'), path.size());
  const std::string_view component = path.substr(0, dot);
  path.remove_prefix(std::min(dot + 1, path.size()));
  return component;
}

std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && number >= 0 ? std::optional(number) : std::nullopt;
}

struct Range {
  std::int64_t first;
  std::int64_t last;
};

std::optional<Range> range_of(std::string_view pattern) {
  const std::size_t dash = pattern.find('-');
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto first = number_of(pattern.substr(0, dash));
  const auto last = number_of(pattern.substr(dash + 1));
  return first && last ? std::optional(Range{*first, *last}) : std::nullopt;
}

bool fits(std::string_view pattern, std::string_view component) {
  if (pattern == "*" || pattern == component) {
    return true;
  }
  const std::optional<Range> range = range_of(pattern);
  const auto number = number_of(component);
  return range && number && range->first <= *number && *number <= range->last;
}

}  // namespace

bool stands_for(std::string_view path, std::string_view module) {
  if (path.empty() || path.back() == '.') {
    return false;
  }
  while (!path.empty()) {
    if (module.empty() || !fits(next_component(path), next_component(module))) {
      return false;
    }
  }
  return true;
}

std::int64_t end_of_ranges(std::string_view path) {
  std::int64_t end = -1;
  while (!path.empty()) {
    if (const std::optional<Range> range = range_of(next_component(path))) {
      end = std::max(end, range->last);
    }
  }
  return end;
}

bool FrozenModules::holds_module(std::string_view module) const {
  return std::any_of(paths.begin(), paths.end(),
                     [&](const std::string& path) { return stands_for(path, module); });
}

bool FrozenModules::holds(std::string_view parameter) const {
  const std::size_t dot = parameter.rfind('.');
  return dot != std::string_view::npos && holds_module(parameter.substr(0, dot));
}

}  // namespace trireme
