#include <algorithm>
#include <charconv>
#include <cmath>

#include "io/chat/jinja_functions.h"
#include "io/chat/python_text.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kFilters[] = {
    "trim",  "length", "count", "tojson",  "upper",  "lower",  "capitalize", "default",
    "d",     "join",   "list",  "string",  "int",    "first",  "last",       "replace",
    "items", "map",    "abs",   "reverse", "select", "reject", "selectattr", "rejectattr"};

constexpr std::string_view kTests[] = {
    "defined", "undefined", "none", "string", "mapping", "sequence",   "iterable", "number",
    "integer", "float",     "true", "false",  "boolean", "equalto",    "eq",       "ne",
    "in",      "odd",       "even", "lt",     "gt",      "divisibleby"};

JinjaValue text_result(std::string text, JinjaBudget& budget) {
  budget.take(static_cast<std::int64_t>(text.size()));
  return JinjaValue::text(std::move(text));
}

std::int64_t length_of(const JinjaValue& value, JinjaBudget& budget) {
  if (const std::string* text = value.as_text()) {
    budget.spend(std::ssize(*text));
    return characters(*text);
  }
  if (const JinjaList* list = value.as_list()) {
    return std::ssize(*list);
  }
  if (value.as<JinjaValue::Mapping>() != nullptr) {
    return std::ssize(*value.as_mapping());
  }
  if (value.is_undefined()) {
    return 0;
  }
  throw DataError(fmt::format("a {} has no length", value.type_name()));
}

JinjaValue joined(const JinjaValue& value, const JinjaArguments& arguments, JinjaBudget& budget) {
  arguments.expect(2, {"d", "attribute"});
  const JinjaValue* between = arguments.find(0, "d");
  const JinjaValue* attribute = arguments.find(1, "attribute");
  std::string text;
  bool is_first = true;
  for (const JinjaValue& item : items_of(value, budget)) {
    const auto put = [&](const JinjaValue& part) {
      const std::string* shared = part.as_text();
      const std::string own = shared == nullptr ? text_of_value(part) : "";
      budget.spend(std::ssize(shared == nullptr ? own : *shared));
      text += shared == nullptr ? own : *shared;
    };
    if (!is_first && between != nullptr) {
      put(*between);
    }
    put(attribute == nullptr ? item : member_of(item, *attribute, budget));
    is_first = false;
  }
  return JinjaValue::text(std::move(text));
}

JinjaValue as_integer(const JinjaValue& value, const JinjaArguments& arguments,
                      JinjaBudget& budget) {
  arguments.expect(1, {"default"});
  const JinjaValue* otherwise = arguments.find(0, "default");
  if (value.is_whole()) {
    return JinjaValue::of(value.whole());
  }
  if (const std::string* text = value.as_text()) {
    budget.spend(std::ssize(*text));
    const std::string_view digits = stripped(*text);
    std::int64_t whole = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
    if (code == std::errc() && end == digits.data() + digits.size()) {
      return JinjaValue::of(whole);
    }
    throw DataError("the filter int is supported for texts that are a whole number only");
  }
  if (const double* number = value.as<double>(); number != nullptr && std::abs(*number) < 1e18) {
    return JinjaValue::of(static_cast<std::int64_t>(*number));
  }
  return otherwise == nullptr ? JinjaValue::of(std::int64_t{0}) : *otherwise;
}

// Arguments behind the name of a test: those of select(), reject() and their like.
bool passes(const JinjaValue& value, const JinjaArguments& arguments, std::size_t test,
            JinjaBudget& budget) {
  if (arguments.values.size() <= test) {
    return value.truth();
  }
  const std::string* name = arguments.values[test].as_text();
  if (name == nullptr || (!is_jinja_test(*name) && *name != "==")) {
    throw DataError("the name of a test is missing, or it is not supported");
  }
  budget.spend_items(arguments.values.size());
  const auto rest = arguments.values.begin() + static_cast<std::ptrdiff_t>(test) + 1;
  return apply_jinja_test(*name == "==" ? "eq" : *name, value, {{rest, arguments.values.end()}, {}},
                          budget);
}

JinjaValue selected(const std::string& name, const JinjaValue& value,
                    const JinjaArguments& arguments, JinjaBudget& budget) {
  const bool by_attribute = name.ends_with("attr");
  const bool keeps = name.starts_with("select");
  arguments.expect(3);
  if (by_attribute && arguments.values.empty()) {
    throw DataError(fmt::format("the filter {} needs the name of an attribute", name));
  }
  JinjaList kept;
  for (const JinjaValue& item : items_of(value, budget)) {
    const JinjaValue of = by_attribute ? member_of(item, arguments.values[0], budget) : item;
    if (passes(of, arguments, by_attribute ? 1 : 0, budget) == keeps) {
      kept.push_back(item);
    }
  }
  return JinjaValue::list(std::move(kept));
}

JinjaValue mapped(const JinjaValue& value, const JinjaArguments& arguments, JinjaBudget& budget) {
  JinjaList results;
  const JinjaValue* attribute = arguments.find(-1, "attribute");
  for (const JinjaValue& item : items_of(value, budget)) {
    if (attribute != nullptr) {
      arguments.expect(1, {"attribute"});
      results.push_back(member_of(item, *attribute, budget));
      continue;
    }
    const std::string* filter = arguments.values.empty() ? nullptr : arguments.values[0].as_text();
    if (filter == nullptr || !is_jinja_filter(*filter) || *filter == "map") {
      throw DataError("the filter map needs attribute=NAME, or the name of a filter");
    }
    budget.spend_items(arguments.values.size());
    const JinjaArguments rest{{arguments.values.begin() + 1, arguments.values.end()},
                              arguments.names};
    results.push_back(apply_jinja_filter(*filter, item, rest, budget));
  }
  return JinjaValue::list(std::move(results));
}

JinjaValue pairs_of(const JinjaValue& value, JinjaBudget& budget) {
  JinjaList pairs;
  if (!value.is_undefined()) {
    if (value.as<JinjaValue::Mapping>() == nullptr) {
      throw DataError(fmt::format("a {} has no items", value.type_name()));
    }
    for (const auto& [key, item] : *value.as_mapping()) {
      budget.take(std::ssize(key));
      pairs.push_back(JinjaValue::list({JinjaValue::text(key), item}));
    }
  }
  return JinjaValue::list(std::move(pairs));
}

JinjaValue end_of(const std::string& name, const JinjaValue& value, JinjaBudget& budget) {
  const JinjaList items = items_of(value, budget);
  if (items.empty()) {
    return JinjaValue::of(JinjaValue::Undefined{name + " of nothing"});
  }
  return name == "first" ? items.front() : items.back();
}

JinjaValue json_result(const JinjaValue& value, const JinjaArguments& arguments,
                       JinjaBudget& budget) {
  arguments.expect(0, {"indent", "ensure_ascii"});
  const JinjaValue* indent = arguments.find(-1, "indent");
  const JinjaValue* ascii = arguments.find(-1, "ensure_ascii");
  if (ascii != nullptr && ascii->truth()) {
    throw DataError("tojson(ensure_ascii=true) is not supported");
  }
  std::int64_t blanks = -1;
  if (indent != nullptr && !indent->is_none()) {
    blanks = indent->is_whole() ? indent->whole() : -1;
    if (blanks < 0 || blanks > 16) {
      throw DataError("tojson takes an indent from 0 to 16");
    }
  }
  return JinjaValue::text(json_of_value(value, blanks, budget));
}

JinjaValue default_of(const JinjaValue& value, const JinjaArguments& arguments) {
  arguments.expect(2, {"default_value", "boolean"});
  const JinjaValue* otherwise = arguments.find(0, "default_value");
  const JinjaValue* boolean = arguments.find(1, "boolean");
  const bool takes =
      value.is_undefined() || (boolean != nullptr && boolean->truth() && !value.truth());
  return !takes ? value : otherwise == nullptr ? JinjaValue::text("") : *otherwise;
}

JinjaValue text_filter(const std::string& name, const JinjaValue& value,
                       const JinjaArguments& arguments, JinjaBudget& budget) {
  // These filters begin with the text of a value.
  const JinjaValue text = JinjaValue::text(text_of_value(value));
  return call_jinja_method(text, name == "trim" ? "strip" : name, arguments, budget);
}

}  // namespace

bool is_jinja_filter(std::string_view name) {
  return std::ranges::find(kFilters, name) != std::end(kFilters);
}

bool is_jinja_test(std::string_view name) {
  return std::ranges::find(kTests, name) != std::end(kTests);
}

JinjaValue apply_jinja_filter(const std::string& name, const JinjaValue& value,
                              const JinjaArguments& arguments, JinjaBudget& budget) {
  if (name == "trim" || name == "upper" || name == "lower" || name == "capitalize" ||
      name == "replace") {
    return text_filter(name, value, arguments, budget);
  }
  if (name == "tojson") {
    return json_result(value, arguments, budget);
  }
  if (name == "default" || name == "d") {
    return default_of(value, arguments);
  }
  if (name == "join") {
    return joined(value, arguments, budget);
  }
  if (name == "int") {
    return as_integer(value, arguments, budget);
  }
  if (name == "map") {
    return mapped(value, arguments, budget);
  }
  if (name.starts_with("select") || name.starts_with("reject")) {
    return selected(name, value, arguments, budget);
  }
  arguments.expect(0);
  if (name == "length" || name == "count") {
    return JinjaValue::of(length_of(value, budget));
  }
  if (name == "list" || name == "reverse") {
    JinjaList items = items_of(value, budget);
    if (name == "reverse") {
      std::ranges::reverse(items);
    }
    return name == "reverse" && value.as_text() != nullptr
               ? joined(JinjaValue::list(std::move(items)), {}, budget)
               : JinjaValue::list(std::move(items));
  }
  if (name == "string") {
    return text_result(text_of_value(value), budget);
  }
  if (name == "items") {
    return pairs_of(value, budget);
  }
  if (name == "abs" && value.is_number()) {
    if (value.is_whole() && value.whole() == INT64_MIN) {
      throw DataError("a number is larger than 64 bits hold");
    }
    return value.is_whole() ? JinjaValue::of(std::abs(value.whole()))
                            : JinjaValue::of(std::abs(value.number()));
  }
  if (name == "first" || name == "last") {
    return end_of(name, value, budget);
  }
  throw DataError(fmt::format("the filter {} is not for a {}", name, value.type_name()));
}

bool apply_jinja_test(const std::string& name, const JinjaValue& value,
                      const JinjaArguments& arguments, JinjaBudget& budget) {
  const bool compares = name == "equalto" || name == "eq" || name == "ne" || name == "in" ||
                        name == "lt" || name == "gt" || name == "divisibleby";
  if (arguments.values.size() != (compares ? 1U : 0U) || !arguments.names.empty()) {
    throw DataError(fmt::format("the test {} takes {} value", name, compares ? "one" : "no"));
  }
  const bool is_text = value.as_text() != nullptr;
  const bool is_list = value.as_list() != nullptr;
  const bool is_mapping = value.as<JinjaValue::Mapping>() != nullptr;
  const bool is_bool = value.as<bool>() != nullptr;
  if (name == "defined" || name == "undefined") {
    return value.is_undefined() == (name == "undefined");
  }
  if (name == "none") {
    return value.is_none();
  }
  if (name == "string") {
    return is_text;
  }
  if (name == "mapping") {
    return is_mapping;
  }
  if (name == "sequence" || name == "iterable") {
    return is_text || is_list || is_mapping || value.is_undefined();
  }
  if (name == "number") {
    return value.is_number();
  }
  if (name == "integer") {
    return value.is_whole() && !is_bool;
  }
  if (name == "float") {
    return value.as<double>() != nullptr;
  }
  if (name == "boolean") {
    return is_bool;
  }
  if (name == "true" || name == "false") {
    return is_bool && value.truth() == (name == "true");
  }
  if (name == "in") {
    return contains(arguments.values[0], value, budget);
  }
  if (name == "equalto" || name == "eq" || name == "ne") {
    return JinjaValue::are_same(value, arguments.values[0], budget) == (name != "ne");
  }
  if (name == "lt" || name == "gt") {
    const int order = compared(value, arguments.values[0], budget);
    return name == "lt" ? order < 0 : order > 0;
  }
  const std::int64_t divisor =
      name == "divisibleby" && arguments.values[0].is_whole() ? arguments.values[0].whole() : 2;
  if (!value.is_whole() || divisor < 1) {
    throw DataError(fmt::format("the test {} is for whole numbers", name));
  }
  return (value.whole() % divisor == 0) == (name != "odd");
}

}  // namespace trireme
