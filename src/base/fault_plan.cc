#include "src/base/fault_plan.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>

#include "src/base/config_tree.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

using Kind = FaultAction::Kind;

constexpr int kLargestErrno = 133;  // EHWPOISON
constexpr double kLongestSleep = 1e6;
constexpr std::int64_t kMaxPlanBytes = 1 << 20;

// The names, indexed by FaultAction::Kind.
constexpr std::array<std::string_view, 13> kActions = {"kill",  "stop", "segv",  "abort", "throw",
                                                       "spin",  "exit", "sleep", "errno", "corrupt",
                                                       "short", "nan",  "scale"};

[[noreturn]] void refuse(std::string_view rule, const std::string& why) {
  throw ConfigError(fmt::format(
      "TRIREME_FAULTS: '{}': {} (a fault is site[@attempt]:rank:nth:action; `trireme config "
      "faults` lists sites and actions)",
      printable(rule), printable(why)));
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string near = nearest_word(word, known);
  return near.empty() ? "" : fmt::format("; did you mean {}?", near);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string_view::npos; begin = end + 1) {
    end = text.find(at, begin);
    parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  return whole && !text.empty() ? std::optional(value) : std::nullopt;
}

// Returns 0 if no error has this name.
int errno_of(std::string_view name) {
  for (int code = 1; code <= kLargestErrno; ++code) {
    const char* const known = ::strerrorname_np(code);
    if (known != nullptr && name == known) {
      return code;
    }
  }
  return 0;
}

// Parses the text after '='.
void parse_value(std::string_view rule, std::string_view value, FaultAction& action) {
  if (action.kind == Kind::exit) {
    const auto code = parse_number<int>(value);
    if (!code || *code < 0 || *code > 255) {
      refuse(rule, fmt::format("exit={}: expected a code from 0 to 255", value));
    }
    action.number = *code;
  } else if (action.kind == Kind::sleep) {
    const auto seconds = parse_number<double>(value);
    if (!seconds || !(*seconds >= 0) || *seconds > kLongestSleep) {
      refuse(rule, fmt::format("sleep={}: expected a number of seconds", value));
    }
    action.seconds = *seconds;
  } else if (action.kind == Kind::scale) {
    const auto factor = parse_number<double>(value);
    if (!factor || !std::isfinite(*factor)) {
      refuse(rule, fmt::format("scale={}: expected a factor, as in scale=1000", value));
    }
    action.factor = *factor;
  } else {
    action.number = errno_of(value);
    if (action.number == 0) {
      refuse(rule, fmt::format("errno={}: expected the name of an error, such as ENOSPC", value));
    }
  }
}

FaultAction parse_action(std::string_view rule, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  FaultAction action;
  for (std::size_t i = 0; i < kActions.size(); ++i) {
    if (kActions[i] != name) {
      continue;
    }
    action.kind = static_cast<Kind>(i);
    const bool takes_value = action.kind == Kind::exit || action.kind == Kind::sleep ||
                             action.kind == Kind::error || action.kind == Kind::scale;
    if (takes_value != (equals != std::string_view::npos)) {
      refuse(rule, takes_value ? fmt::format("{} needs a value, as in {}=...", name, name)
                               : fmt::format("{} takes no value", name));
    }
    if (takes_value) {
      parse_value(rule, text.substr(equals + 1), action);
    }
    return action;
  }
  refuse(rule, fmt::format("unknown action '{}'{}", name,
                           did_you_mean(name, {kActions.begin(), kActions.end()})));
}

void check_possible(std::string_view rule, const FaultSite& site, const FaultAction& action) {
  const bool numbers = site.kind == FaultSite::Kind::numbers;
  if (action.kind == Kind::corrupt && site.kind != FaultSite::Kind::data && !numbers) {
    refuse(rule, fmt::format("{} handles no data that could be corrupted", site.name));
  }
  if ((action.kind == Kind::nan || action.kind == Kind::scale) && !numbers) {
    refuse(rule, fmt::format("{} handles no numbers that could be changed", site.name));
  }
  if (action.kind == Kind::shorten && site.name != "file.read" && site.name != "file.write") {
    refuse(rule, fmt::format("{} transfers nothing that could be cut short", site.name));
  }
}

// Returns the point that the rule names.
const FaultSite& parse_site(std::string_view text, std::string_view name,
                            std::span<const FaultSite> sites, FaultRule& rule) {
  const std::size_t at = name.find('@');
  rule.site = name.substr(0, at);
  const FaultSite* const found = find_fault_site(sites, rule.site);
  if (found == nullptr) {
    std::vector<std::string> known;
    for (const FaultSite& site : sites) {
      known.emplace_back(site.name);
    }
    refuse(text,
           fmt::format("unknown fault point '{}'{}", rule.site, did_you_mean(rule.site, known)));
  }
  if (at != std::string_view::npos) {
    const auto attempt = parse_number<int>(name.substr(at + 1));
    if (!attempt || *attempt < 1) {
      refuse(text, fmt::format("'{}' is not an attempt: attempts are numbered from 1",
                               name.substr(at + 1)));
    }
    rule.attempt = *attempt;
  }
  return *found;
}

void parse_passage(std::string_view text, std::string_view nth, FaultRule& rule) {
  if (nth == "*") {
    rule.and_later = true;
    return;
  }
  rule.and_later = nth.ends_with('+');
  const auto number =
      parse_number<std::int64_t>(rule.and_later ? nth.substr(0, nth.size() - 1) : nth);
  if (!number || *number < 1) {
    refuse(
        text,
        fmt::format("'{}' is not a number of passages: expected N or N+ with N from 1, or *", nth));
  }
  rule.nth = *number;
}

FaultRule parse_rule(std::string_view text, std::span<const FaultSite> sites) {
  const std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() != 4) {
    refuse(text, fmt::format("it has {} instead of 4",
                             counted(static_cast<std::int64_t>(parts.size()), "part")));
  }
  FaultRule rule;
  const FaultSite& site = parse_site(text, parts[0], sites, rule);
  if (parts[1] != "*") {
    const auto rank = parse_number<int>(parts[1]);
    if (!rank || *rank < 0) {
      refuse(text, fmt::format("'{}' is not a rank: expected a number or *", parts[1]));
    }
    rule.rank = *rank;
  }
  parse_passage(text, parts[2], rule);
  rule.action = parse_action(text, parts[3]);
  check_possible(text, site, rule.action);
  return rule;
}

std::vector<std::string> rules_of_file(const std::string& path) {
  std::vector<std::string> rules;
  for (const ConfigEntry& entry : parse_config(read_file(path, kMaxPlanBytes), path)) {
    if (entry.key != "faults" || entry.value.kind != ConfigValue::Kind::list) {
      throw ConfigError(
          fmt::format("{}:{}: unexpected '{}': a file of faults holds one list: faults: "
                      "[\"site:rank:nth:action\", ...]",
                      path, entry.line, entry.key));
    }
    rules = entry.value.items;
  }
  return rules;
}

}  // namespace

std::vector<FaultRule> parse_fault_plan(std::string_view text, std::span<const FaultSite> sites) {
  std::vector<std::string> texts;
  if (text.starts_with('@')) {
    texts = rules_of_file(std::string(text.substr(1)));
  } else if (!text.empty()) {
    const std::vector<std::string_view> parts = split(text, ',');
    texts.assign(parts.begin(), parts.end());
  }
  if (texts.size() > kMaxFaultRules) {
    throw ConfigError(fmt::format("TRIREME_FAULTS lists {} faults; at most {} can be planned",
                                  texts.size(), kMaxFaultRules));
  }
  std::vector<FaultRule> rules;
  for (const std::string& rule : texts) {
    rules.push_back(parse_rule(rule, sites));
  }
  return rules;
}

std::vector<std::string> fault_actions() {
  std::vector<std::string> actions(kActions.begin(), kActions.end());
  actions[static_cast<std::size_t>(Kind::exit)] += "=CODE";
  actions[static_cast<std::size_t>(Kind::sleep)] += "=SECONDS";
  actions[static_cast<std::size_t>(Kind::error)] += "=NAME";
  actions[static_cast<std::size_t>(Kind::scale)] += "=FACTOR";
  return actions;
}

std::string to_text(const FaultAction& action) {
  const std::string name(kActions[static_cast<std::size_t>(action.kind)]);
  switch (action.kind) {
    case Kind::exit:
      return fmt::format("{}={}", name, action.number);
    case Kind::sleep:
      return fmt::format("{}={}", name, action.seconds);
    case Kind::error:
      return fmt::format("{}={}", name, ::strerrorname_np(action.number));
    case Kind::scale:
      return fmt::format("{}={}", name, action.factor);
    default:
      return name;
  }
}

std::string to_text(const FaultRule& rule) {
  return fmt::format("{}{}:{}:{}{}:{}", rule.site,
                     rule.attempt == 0 ? "" : fmt::format("@{}", rule.attempt),
                     rule.rank < 0 ? "*" : std::to_string(rule.rank), rule.nth,
                     rule.and_later ? "+" : "", to_text(rule.action));
}

}  // namespace trireme
