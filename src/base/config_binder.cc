#include "src/base/config_binder.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/ranges.h>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr double kSmallestFloat = std::numeric_limits<float>::min();
constexpr double kLargestFloat = std::numeric_limits<float>::max();

// Returns whether a number begins like 010, which is 8 in some versions of YAML and 10 in others.
bool may_be_octal(std::string_view text) {
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  return digits.size() > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9';
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = code == std::errc() && end == text.data() + text.size() && !may_be_octal(text);
  return whole ? std::optional(number) : std::nullopt;
}

// Refuses infinities and NaN.
std::optional<double> parse_real(std::string_view text) {
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = code == std::errc() && end == text.data() + text.size() && !may_be_octal(text);
  return whole && std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> parse_size(const std::string& text) {
  try {
    return parse_bytes(text);
  } catch (const ConfigError&) {
    return std::nullopt;
  }
}

std::optional<std::vector<double>> parse_reals(const std::vector<std::string>& texts) {
  std::vector<double> numbers;
  for (const std::string& text : texts) {
    const auto number = parse_real(text);
    if (!number) {
      return std::nullopt;
    }
    numbers.push_back(*number);
  }
  return numbers;
}

ConfigValue list_of(std::span<const double> numbers) {
  ConfigValue value = ConfigValue::list({});
  for (const double number : numbers) {
    value.items.push_back(fmt::format("{}", number));
  }
  return value;
}

// Writes the exact size, with the largest suffix that divides it.
std::string size_text(std::int64_t bytes) {
  for (const auto& [suffix, shift] : {std::pair{'G', 30}, {'M', 20}, {'K', 10}}) {
    if (bytes != 0 && bytes % (std::int64_t{1} << shift) == 0) {
      return fmt::format("{}{}", bytes >> shift, suffix);
    }
  }
  return fmt::format("{}", bytes);
}

const std::string* text_of(const ConfigValue& value) {
  return value.kind == ConfigValue::Kind::scalar ? &value.items[0] : nullptr;
}

}  // namespace

ConfigRule& ConfigRule::bound(std::string_view words, double bound, bool (*holds)(double, double)) {
  binder_.resolved_[index_].allowed +=
      fmt::format("{} {} {}", narrowed_ ? " and" : ",", words, bound);
  narrowed_ = true;
  for (const double number : numbers_) {
    if (!holds(number, bound)) {
      binder_.unfit_.insert(index_);
    }
  }
  return *this;
}

ConfigRule& ConfigRule::at_least(double bound_value) {
  return bound("at least", bound_value, [](double a, double b) { return a >= b; });
}
ConfigRule& ConfigRule::at_most(double bound_value) {
  return bound("at most", bound_value, [](double a, double b) { return a <= b; });
}
ConfigRule& ConfigRule::above(double bound_value) {
  return bound("above", bound_value, [](double a, double b) { return a > b; });
}
ConfigRule& ConfigRule::below(double bound_value) {
  return bound("below", bound_value, [](double a, double b) { return a < b; });
}

ConfigRule& ConfigRule::required() {
  ResolvedKey& key = binder_.resolved_[index_];
  key.required = true;
  const bool is_empty = key.value.kind == ConfigValue::Kind::scalar && key.value.items[0].empty();
  if (!binder_.given_.contains(key.key) || is_empty) {
    binder_.problems_.push_back(
        fmt::format("{} is missing: {} ({}); write it into the file or, for a run, "
                    "give {}=VALUE on the command line",
                    key.key, key.doc, key.allowed, key.key));
  }
  return *this;
}

ConfigRule& ConfigRule::one_of(const std::vector<std::string>& words) {
  ResolvedKey& key = binder_.resolved_[index_];
  key.allowed = fmt::format("{}", fmt::join(words, "|"));
  for (const std::string& item : key.value.items) {
    if (key.origin != "default" && std::find(words.begin(), words.end(), item) == words.end()) {
      binder_.unfit_.insert(index_);
    }
  }
  return *this;
}

const ConfigBinder::Given* ConfigBinder::begin(const std::string& key, ConfigValue fallback,
                                               std::string_view doc, std::string allowed) {
  for (const ResolvedKey& other : resolved_) {
    check(other.key != key, "a configuration key is bound once");
  }
  resolved_.push_back(
      {key, std::move(fallback), "default", std::string(doc), std::move(allowed), false});
  const auto found = given_.find(key);
  return found == given_.end() ? nullptr : &found->second;
}

ConfigRule ConfigBinder::end(const Given* given, bool well_formed, std::vector<double> numbers) {
  const std::size_t index = resolved_.size() - 1;
  if (given != nullptr) {
    resolved_[index].origin = given->origin;
    resolved_[index].value = given->value;
    if (!well_formed) {
      unfit_.insert(index);
    }
  }
  return {*this, index, std::move(numbers)};
}

ConfigRule ConfigBinder::bind_integer(const std::string& key, std::int64_t& value, std::int64_t low,
                                      std::int64_t high, std::string_view doc) {
  const Given* given = begin(key, ConfigValue::scalar(fmt::format("{}", value)), doc, "integer");
  const std::string* text = given == nullptr ? nullptr : text_of(given->value);
  const auto number = text == nullptr ? std::nullopt : parse_integer(*text);
  if (!number || *number < low || *number > high) {
    return end(given, false);
  }
  value = *number;
  return end(given, true, {static_cast<double>(value)});
}

ConfigRule ConfigBinder::integer(const std::string& key, std::int64_t& value,
                                 std::string_view doc) {
  return bind_integer(key, value, kLeast, kMost, doc);
}

ConfigRule ConfigBinder::integer(const std::string& key, int& value, std::string_view doc) {
  std::int64_t wide = value;
  const ConfigRule rule = bind_integer(key, wide, std::numeric_limits<int>::min(),
                                       std::numeric_limits<int>::max(), doc);
  value = static_cast<int>(wide);
  return rule;
}

ConfigRule ConfigBinder::integer(const std::string& key, std::uint64_t& value,
                                 std::string_view doc) {
  auto wide = static_cast<std::int64_t>(value);
  const ConfigRule rule = bind_integer(key, wide, 0, kMost, doc).at_least(0);
  value = static_cast<std::uint64_t>(wide);
  return rule;
}

ConfigRule ConfigBinder::real(const std::string& key, double& value, std::string_view doc) {
  const Given* given = begin(key, ConfigValue::scalar(fmt::format("{}", value)), doc, "number");
  const std::string* text = given == nullptr ? nullptr : text_of(given->value);
  const auto number = text == nullptr ? std::nullopt : parse_real(*text);
  if (!number) {
    return end(given, false);
  }
  value = *number;
  return end(given, true, {value});
}

ConfigRule ConfigBinder::real(const std::string& key, float& value, std::string_view doc) {
  // The default is shown in the shortest form of the float, not of the double made from it.
  const std::string fallback = fmt::format("{}", value);
  double wide = value;
  const ConfigRule rule = real(key, wide, doc);
  ResolvedKey& resolved = resolved_.back();
  if (resolved.origin == "default") {
    resolved.value = ConfigValue::scalar(fallback);
  }
  const double size = std::abs(wide);
  if (size > kLargestFloat || (size > 0 && size < kSmallestFloat)) {
    refuse(key, fmt::format("{} is outside the range of a 32-bit float ({:.4g} to {:.4g})", wide,
                            kSmallestFloat, kLargestFloat));
    return rule;
  }
  value = static_cast<float>(wide);
  // The bounds hold for the value that the program uses: 0.9999999999 becomes 1.
  std::vector<double> numbers;
  if (!rule.numbers_.empty()) {
    numbers.push_back(static_cast<double>(value));
  }
  return {*this, resolved_.size() - 1, std::move(numbers)};
}

ConfigRule ConfigBinder::boolean(const std::string& key, bool& value, std::string_view doc) {
  const Given* given = begin(key, ConfigValue::scalar(value ? "true" : "false"), doc, "true|false");
  const std::string* text = given == nullptr ? nullptr : text_of(given->value);
  if (text == nullptr || (*text != "true" && *text != "false")) {
    return end(given, false);
  }
  value = *text == "true";
  return end(given, true);
}

ConfigRule ConfigBinder::text(const std::string& key, std::string& value, std::string_view doc) {
  const Given* given = begin(key, ConfigValue::scalar(value), doc, "text");
  if (given != nullptr && given->value.kind == ConfigValue::Kind::null) {
    value.clear();  // `key=` unsets what a weaker source has given
    const ConfigRule rule = end(given, true);
    resolved_.back().value = ConfigValue::scalar("");
    return rule;
  }
  const std::string* text = given == nullptr ? nullptr : text_of(given->value);
  if (text == nullptr) {
    return end(given, false);
  }
  value = *text;
  return end(given, true);
}

ConfigRule ConfigBinder::path(const std::string& key, std::filesystem::path& value,
                              std::string_view doc) {
  std::string as_text = value.string();
  const ConfigRule rule = text(key, as_text, doc);
  resolved_.back().allowed = "path";
  value = as_text;
  return rule;
}

ConfigRule ConfigBinder::bytes(const std::string& key, std::int64_t& value, std::string_view doc) {
  const Given* given =
      begin(key, ConfigValue::scalar(size_text(value)), doc, "size as in 64K, 25M or 4GiB");
  const std::string* text = given == nullptr ? nullptr : text_of(given->value);
  const auto number = text == nullptr ? std::nullopt : parse_size(*text);
  if (!number) {
    return end(given, false);
  }
  value = *number;
  return end(given, true, {static_cast<double>(value)});
}

ConfigRule ConfigBinder::integer_or_word(const std::string& key, IntegerOrWord& value,
                                         const std::vector<std::string>& words,
                                         std::string_view doc) {
  const std::string fallback = value.word.empty() ? fmt::format("{}", value.integer) : value.word;
  const Given* given = begin(key, ConfigValue::scalar(fallback), doc,
                             fmt::format("{}|integer", fmt::join(words, "|")));
  const std::string* text = given == nullptr ? nullptr : text_of(given->value);
  if (text == nullptr) {
    return end(given, false);
  }
  if (std::find(words.begin(), words.end(), *text) != words.end()) {
    value = {0, *text};
    return end(given, true);
  }
  const auto number = parse_integer(*text);
  if (!number) {
    return end(given, false);
  }
  value = {*number, ""};
  return end(given, true, {static_cast<double>(*number)});
}

ConfigRule ConfigBinder::real_pair(const std::string& key, std::array<double, 2>& value,
                                   std::string_view doc) {
  const Given* given = begin(key, list_of(value), doc, "[number, number]");
  const auto numbers = given == nullptr ? std::nullopt : parse_reals(given->value.items);
  if (!numbers || given->value.kind != ConfigValue::Kind::list || numbers->size() != 2) {
    return end(given, false);
  }
  value = {(*numbers)[0], (*numbers)[1]};
  return end(given, true, *numbers);
}

ConfigRule ConfigBinder::texts(const std::string& key, std::vector<std::string>& value,
                               std::string_view doc) {
  const Given* given = begin(key, ConfigValue::list(value), doc, "text or [text, ...]");
  if (given == nullptr || (given->value.kind != ConfigValue::Kind::scalar &&
                           given->value.kind != ConfigValue::Kind::list)) {
    return end(given, false);
  }
  value = given->value.items;
  return end(given, true);
}

ConfigRule ConfigBinder::mappings(const std::string& key,
                                  std::vector<std::vector<ConfigEntry>>& value,
                                  const std::string& text_key, std::string_view doc) {
  using Kind = ConfigValue::Kind;
  const Given* given =
      begin(key, ConfigValue::scalar(""), doc, fmt::format("{0} or [{{{0}: ...}}, ...]", text_key));
  if (given == nullptr || given->value.kind == Kind::null ||
      (given->value.kind == Kind::scalar && given->value.items[0].empty())) {
    const ConfigRule rule = end(given, true);  // `key=` unsets what a weaker source has given
    resolved_.back().value = ConfigValue::scalar("");
    return rule;
  }
  const std::vector<std::string>& items = given->value.items;
  if (given->value.kind == Kind::mapping || items.empty()) {
    return end(given, false);
  }
  for (const std::string& item : items) {
    value.push_back(given->value.kind == Kind::mappings
                        ? parse_config(item, given->origin)
                        : std::vector{ConfigEntry{text_key, ConfigValue::scalar(item), 1}});
  }
  return end(given, true);
}

}  // namespace trireme
