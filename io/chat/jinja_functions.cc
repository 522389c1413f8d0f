#include "io/chat/jinja_functions.h"

#include <algorithm>
#include <cmath>

#include "io/chat/python_text.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kMethods[] = {
    "strip", "lstrip",  "rstrip",     "split",        "startswith",  "endswith", "upper",
    "lower", "replace", "capitalize", "items",        "keys",        "values",   "get",
    "join",  "find",    "count",      "removeprefix", "removesuffix"};

JinjaValue texts_of(const std::vector<std::string_view>& parts, JinjaBudget& budget) {
  JinjaList list;
  for (const std::string_view part : parts) {
    budget.take(static_cast<std::int64_t>(part.size()));
    list.push_back(JinjaValue::text(part));
  }
  return JinjaValue::list(std::move(list));
}

// Returns an argument that has to be a text, or null if it is not given or none.
const std::string* text_argument(const JinjaArguments& arguments, int index,
                                 std::string_view name) {
  const JinjaValue* value = arguments.find(index, name);
  if (value == nullptr || value->is_none()) {
    return nullptr;
  }
  if (value->as_text() == nullptr) {
    throw DataError(fmt::format("a text is expected, not a {}", value->type_name()));
  }
  return value->as_text();
}

const std::string& needed_text(const JinjaArguments& arguments, int index) {
  const std::string* text = text_argument(arguments, index, "");
  if (text == nullptr) {
    throw DataError("a text is missing");
  }
  return *text;
}

std::string in_case(std::string_view text, const std::string& method) {
  std::string changed;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) {
      throw DataError(fmt::format("{} is supported for ASCII texts only", method));
    }
    const bool upper = method == "upper" || (method == "capitalize" && changed.empty());
    const bool is_letter = upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z';
    changed += static_cast<char>(is_letter ? c ^ 0x20 : c);
  }
  return changed;
}

std::string_view trimmed(const std::string& text, const std::string& method,
                         const JinjaArguments& arguments, JinjaBudget& budget) {
  arguments.expect(1, {"chars"});
  const std::string* of = text_argument(arguments, 0, "chars");
  budget.spend(std::ssize(text) / 8 * (of == nullptr ? 0 : std::ssize(*of)));
  std::string_view rest = text;
  if (method != "rstrip") {
    rest = of == nullptr ? lstripped(rest) : lstripped(rest, *of);
  }
  if (method != "lstrip") {
    rest = of == nullptr ? rstripped(rest) : rstripped(rest, *of);
  }
  return rest;
}

JinjaValue split(const std::string& text, const JinjaArguments& arguments, JinjaBudget& budget) {
  arguments.expect(2, {"sep", "maxsplit"});
  const std::string* separator = text_argument(arguments, 0, "sep");
  const JinjaValue* most = arguments.find(1, "maxsplit");
  if (separator == nullptr) {
    if (most != nullptr) {
      throw DataError("split() at white space is not supported with a number of parts");
    }
    return texts_of(split_words(text), budget);
  }
  if (separator->empty() || (most != nullptr && !most->is_whole())) {
    throw DataError("split() needs a separator that is not empty, and a whole number of parts");
  }
  budget.spend_search(text, *separator);
  return texts_of(split_at(text, *separator, most == nullptr ? -1 : most->whole()), budget);
}

bool has_affix(const std::string& text, const std::string& method, const JinjaArguments& arguments,
               JinjaBudget& budget) {
  arguments.expect(1);
  const auto one = [&](const JinjaValue& value) {
    if (value.as_text() == nullptr) {
      throw DataError(fmt::format("{}() takes a text", method));
    }
    budget.spend_comparison(text, *value.as_text());
    return method == "startswith" ? text.starts_with(*value.as_text())
                                  : text.ends_with(*value.as_text());
  };
  if (arguments.values.empty()) {
    throw DataError(fmt::format("{}() takes a text", method));
  }
  const JinjaList* list = arguments.values[0].as_list();
  return list == nullptr ? one(arguments.values[0]) : std::ranges::any_of(*list, one);
}

JinjaValue replacing(const std::string& text, const JinjaArguments& arguments,
                     JinjaBudget& budget) {
  arguments.expect(2);
  const std::string& from = needed_text(arguments, 0);
  const std::string& to = needed_text(arguments, 1);
  if (from.empty()) {
    throw DataError("replace() needs a text that is not empty");
  }
  const auto size = static_cast<std::int64_t>(text.size());
  budget.spend_search(text, from);
  budget.take(size +
              size / static_cast<std::int64_t>(from.size()) * static_cast<std::int64_t>(to.size()));
  return JinjaValue::text(with_replaced(text, from, to));
}

JinjaValue text_method(const std::string& text, const std::string& name,
                       const JinjaArguments& arguments, JinjaBudget& budget) {
  budget.take(static_cast<std::int64_t>(text.size()));
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    return JinjaValue::text(trimmed(text, name, arguments, budget));
  }
  if (name == "split") {
    return split(text, arguments, budget);
  }
  if (name == "startswith" || name == "endswith") {
    return JinjaValue::of(has_affix(text, name, arguments, budget));
  }
  if (name == "replace") {
    return replacing(text, arguments, budget);
  }
  if (name == "upper" || name == "lower" || name == "capitalize") {
    arguments.expect(0);
    return JinjaValue::text(in_case(text, name));
  }
  if (name == "join") {
    arguments.expect(1);
    return apply_jinja_filter("join", arguments.values.empty() ? JinjaValue() : arguments.values[0],
                              {{JinjaValue::text(text)}, {}}, budget);
  }
  arguments.expect(1);
  const std::string& other = needed_text(arguments, 0);
  if (name == "removeprefix" || name == "removesuffix") {
    std::string_view rest = text;
    if (name == "removeprefix" && rest.starts_with(other)) {
      rest.remove_prefix(other.size());
    } else if (name == "removesuffix" && rest.ends_with(other)) {
      rest.remove_suffix(other.size());
    }
    return JinjaValue::text(rest);
  }
  if (name == "find") {
    budget.spend_search(text, other);
    const std::size_t at = find_text(text, other);
    return JinjaValue::of(at == std::string_view::npos
                              ? std::int64_t{-1}
                              : characters(std::string_view(text).substr(0, at)));
  }
  if (name == "count" && !other.empty()) {
    budget.spend_search(text, other);
    return JinjaValue::of(std::ssize(split_at(text, other, -1)) - 1);
  }
  throw DataError(fmt::format("a text has no method {}, or not with these values", name));
}

JinjaValue mapping_method(const JinjaValue& value, const std::string& name,
                          const JinjaArguments& arguments, JinjaBudget& budget) {
  if (name == "items") {
    return apply_jinja_filter("items", value, arguments, budget);
  }
  if (name == "get") {
    arguments.expect(2);
    const JinjaValue* found = value.find(needed_text(arguments, 0), budget);
    const JinjaValue* otherwise = arguments.find(1, "");
    return found != nullptr ? *found : otherwise == nullptr ? JinjaValue() : *otherwise;
  }
  arguments.expect(0);
  if (name != "keys" && name != "values") {
    throw DataError(fmt::format("a mapping has no method {}", name));
  }
  JinjaList list;
  for (const auto& [key, item] : *value.as_mapping()) {
    budget.take(std::ssize(key));
    list.push_back(name == "keys" ? JinjaValue::text(key) : item);
  }
  return JinjaValue::list(std::move(list));
}

JinjaValue range_of(const JinjaArguments& arguments, JinjaBudget& budget) {
  constexpr std::int64_t kMostRange = std::int64_t{1} << 31;
  arguments.expect(3);
  std::int64_t from[] = {0, 0, 1};
  const std::size_t count = arguments.values.size();
  for (std::size_t i = 0; i < count; ++i) {
    const JinjaValue& value = arguments.values[i];
    if (!value.is_whole() || value.whole() > kMostRange || value.whole() < -kMostRange) {
      throw DataError("range() takes whole numbers below 2^31");
    }
    from[count == 1 ? 1 : i] = value.whole();
  }
  if (count == 0 || from[2] == 0) {
    throw DataError("range() takes one to three numbers, and a step other than 0");
  }
  JinjaList list;
  for (std::int64_t i = from[0]; from[2] > 0 ? i < from[1] : i > from[1]; i += from[2]) {
    budget.take(static_cast<std::int64_t>(sizeof(JinjaValue)));
    list.push_back(JinjaValue::of(i));
  }
  return JinjaValue::list(std::move(list));
}

}  // namespace

const JinjaValue* JinjaArguments::find(int index, std::string_view name) const {
  const std::size_t plain = values.size() - names.size();
  if (index >= 0 && static_cast<std::size_t>(index) < plain) {
    return &values[static_cast<std::size_t>(index)];
  }
  const auto found = std::ranges::find(names, name);
  return found == names.end() ? nullptr
                              : &values[plain + static_cast<std::size_t>(found - names.begin())];
}

void JinjaArguments::expect(std::size_t most, const std::vector<std::string_view>& known) const {
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) == known.end()) {
      throw DataError(fmt::format("the argument '{}' is not supported", name));
    }
  }
  if (values.size() - names.size() > most) {
    throw DataError(fmt::format("there are more than {} arguments", most));
  }
}

bool is_jinja_method(std::string_view name) {
  return std::ranges::find(kMethods, name) != std::end(kMethods);
}

JinjaValue call_jinja_method(const JinjaValue& value, const std::string& name,
                             const JinjaArguments& arguments, JinjaBudget& budget) {
  if (const std::string* text = value.as_text()) {
    return text_method(*text, name, arguments, budget);
  }
  if (value.as<JinjaValue::Mapping>() != nullptr) {
    return mapping_method(value, name, arguments, budget);
  }
  throw DataError(value.is_undefined()
                      ? fmt::format("'{}' is undefined", value.as<JinjaValue::Undefined>()->name)
                      : fmt::format("a {} has no method {}", value.type_name(), name));
}

JinjaValue call_jinja_function(const std::string& name, const JinjaArguments& arguments,
                               JinjaBudget& budget) {
  if (name == "raise_exception") {
    arguments.expect(1);
    throw DataError(
        fmt::format("the template refuses the conversation: {}",
                    arguments.values.empty() ? "" : text_of_value(arguments.values[0])));
  }
  if (name == "range") {
    return range_of(arguments, budget);
  }
  if (name != "namespace" && name != "dict") {
    throw DataError(fmt::format("the function '{}' is not supported", name));
  }
  JinjaMapping members;
  const std::size_t plain = arguments.values.size() - arguments.names.size();
  if (plain > 0) {
    throw DataError(fmt::format("{}() is supported with named values only", name));
  }
  for (std::size_t i = 0; i < arguments.names.size(); ++i) {
    members.emplace_back(arguments.names[i], arguments.values[i]);
  }
  return name == "namespace" ? JinjaValue::space(std::move(members))
                             : JinjaValue::mapping(std::move(members));
}

}  // namespace trireme
