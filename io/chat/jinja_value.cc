#include "io/chat/jinja_value.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "io/chat/python_text.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// Throws DataError if a value can't be kept within another.
int depth_around(int depth, const JinjaValue& inner) {
  if (inner.depth() >= JinjaValue::kMostDepth) {
    throw DataError(
        inner.as<JinjaValue::Namespace>() != nullptr
            ? std::string("a namespace can't be kept in another value")
            : fmt::format("values are nested deeper than {} levels", JinjaValue::kMostDepth));
  }
  return std::max(depth, inner.depth() + 1);
}

bool same_lists(const JinjaList& a, const JinjaList& b, JinjaBudget& budget) {
  return a.size() == b.size() && std::ranges::equal(a, b, [&](const auto& one, const auto& other) {
           return JinjaValue::are_same(one, other, budget);
         });
}

// b: a value with a mapping of the same size.
bool same_mappings(const JinjaMapping& a, const JinjaValue& b, JinjaBudget& budget) {
  return std::ranges::all_of(a, [&](const auto& one) {
    const JinjaValue* other = b.find(one.first, budget);
    return other != nullptr && JinjaValue::are_same(one.second, *other, budget);
  });
}

// Returns the value of a key, or null. Mapping: perhaps const.
template <class Mapping>
auto* found_key(Mapping& mapping, std::string_view key, JinjaBudget& budget) {
  for (auto& [name, value] : mapping) {
    budget.spend_comparison(name.size() == key.size() ? key : std::string_view(), key);
    if (name == key) {
      return &value;
    }
  }
  return static_cast<decltype(&mapping.front().second)>(nullptr);
}

}  // namespace

JinjaValue JinjaValue::list(JinjaList list) {
  int depth = 1;
  for (const JinjaValue& item : list) {
    depth = depth_around(depth, item);
  }
  JinjaValue made = of(List(std::make_shared<const JinjaList>(std::move(list))));
  made.depth_ = depth;
  return made;
}

JinjaValue JinjaValue::mapping(JinjaMapping mapping) {
  int depth = 1;
  for (const auto& [key, item] : mapping) {
    depth = depth_around(depth, item);
  }
  JinjaValue made = of(Mapping(std::make_shared<const JinjaMapping>(std::move(mapping))));
  made.depth_ = depth;
  return made;
}

JinjaValue JinjaValue::space(JinjaMapping members) {
  for (const auto& [key, item] : members) {
    depth_around(0, item);
  }
  JinjaValue made = of(Namespace{std::make_shared<JinjaMapping>(std::move(members))});
  made.depth_ = kMostDepth;
  return made;
}

JinjaValue JinjaValue::from_json(const nlohmann::ordered_json& json) {
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
    case Type::boolean:
      return of(json.get<bool>());
    case Type::number_integer:
      return of(json.get<std::int64_t>());
    case Type::number_unsigned: {
      const auto number = json.get<std::uint64_t>();
      if (number > static_cast<std::uint64_t>(INT64_MAX)) {
        throw DataError(
            fmt::format("the number {} is larger than 2^63 - 1: write it as a text", number));
      }
      return of(static_cast<std::int64_t>(number));
    }
    case Type::number_float:
      return of(json.get<double>());
    case Type::string:
      return text(json.get_ref<const std::string&>());
    case Type::array: {
      JinjaList list;
      for (const auto& item : json) {
        list.push_back(from_json(item));
      }
      return JinjaValue::list(std::move(list));
    }
    case Type::object: {
      JinjaMapping mapping;
      for (const auto& [key, item] : json.items()) {
        mapping.emplace_back(key, from_json(item));
      }
      return JinjaValue::mapping(std::move(mapping));
    }
    default:
      return {};
  }
}

const std::string* JinjaValue::as_text() const {
  const Text* text = as<Text>();
  return text == nullptr ? nullptr : text->get();
}

const JinjaList* JinjaValue::as_list() const {
  const List* list = as<List>();
  return list == nullptr ? nullptr : list->get();
}

const JinjaMapping* JinjaValue::as_mapping() const {
  if (const Namespace* space = as<Namespace>()) {
    return space->members.get();
  }
  const Mapping* mapping = as<Mapping>();
  return mapping == nullptr ? nullptr : mapping->get();
}

bool JinjaValue::is_whole() const { return as<bool>() != nullptr || as<std::int64_t>() != nullptr; }
bool JinjaValue::is_number() const { return is_whole() || as<double>() != nullptr; }

std::int64_t JinjaValue::whole() const {
  const bool* truth = as<bool>();
  return truth != nullptr ? static_cast<std::int64_t>(*truth) : *as<std::int64_t>();
}

double JinjaValue::number() const {
  const double* number = as<double>();
  return number != nullptr ? *number : static_cast<double>(whole());
}

bool JinjaValue::truth() const {
  if (is_undefined() || is_none()) {
    return false;
  }
  if (is_number()) {
    return number() != 0;
  }
  if (const std::string* text = as_text()) {
    return !text->empty();
  }
  if (const JinjaList* list = as_list()) {
    return !list->empty();
  }
  const Mapping* mapping = as<Mapping>();
  return mapping == nullptr || !(*mapping)->empty();
}

const char* JinjaValue::type_name() const {
  constexpr const char* kNames[] = {"undefined", "none", "bool", "int",       "float",
                                    "string",    "list", "dict", "namespace", "function"};
  return kNames[value_.index()];
}

const JinjaValue* JinjaValue::find(std::string_view key, JinjaBudget& budget) const {
  const JinjaMapping* mapping = as_mapping();
  return mapping == nullptr ? nullptr : found_key(*mapping, key, budget);
}

JinjaValue* find_key(JinjaMapping& mapping, std::string_view key, JinjaBudget& budget) {
  return found_key(mapping, key, budget);
}

bool JinjaValue::are_same(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget) {
  budget.spend(16);
  if (a.is_number() && b.is_number()) {
    return a.is_whole() && b.is_whole() ? a.whole() == b.whole() : a.number() == b.number();
  }
  if (a.value_.index() != b.value_.index()) {
    return false;
  }
  if (const std::string* text = a.as_text()) {
    budget.spend_comparison(*text, *b.as_text());
    return *text == *b.as_text();
  }
  if (const JinjaList* list = a.as_list()) {
    return same_lists(*list, *b.as_list(), budget);
  }
  if (a.as<Mapping>() != nullptr) {
    return a.as_mapping()->size() == b.as_mapping()->size() &&
           same_mappings(*a.as_mapping(), b, budget);
  }
  if (const auto* space = a.as<Namespace>()) {
    return space->members == b.as<Namespace>()->members;
  }
  const auto* function = a.as<Function>();
  return function == nullptr || function->name == b.as<Function>()->name;
}

std::string text_of_value(const JinjaValue& value) {
  if (value.is_undefined()) {
    return "";
  }
  if (value.is_none()) {
    return "None";
  }
  if (const bool* truth = value.as<bool>()) {
    return *truth ? "True" : "False";
  }
  if (value.is_whole()) {
    return std::to_string(value.whole());
  }
  if (value.is_number()) {
    return python_digits(value.number());
  }
  if (const std::string* text = value.as_text()) {
    return *text;
  }
  throw DataError(fmt::format(
      "the text of a {} is how Python writes it, which is not supported: use the filter tojson",
      value.type_name()));
}

int compared(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget) {
  if (a.is_whole() && b.is_whole()) {
    return a.whole() < b.whole() ? -1 : a.whole() > b.whole() ? 1 : 0;
  }
  if (a.is_number() && b.is_number()) {
    return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  }
  if (a.as_text() != nullptr && b.as_text() != nullptr) {
    budget.spend_comparison(*a.as_text(), *b.as_text());
    return a.as_text()->compare(*b.as_text());
  }
  throw DataError(fmt::format("a {} and a {} are not ordered", a.type_name(), b.type_name()));
}

bool contains(const JinjaValue& container, const JinjaValue& item, JinjaBudget& budget) {
  if (const std::string* text = container.as_text(); text != nullptr && item.as_text() != nullptr) {
    budget.spend_search(*text, *item.as_text());
    return find_text(*text, *item.as_text()) != std::string_view::npos;
  }
  if (const JinjaList* list = container.as_list()) {
    return std::ranges::any_of(
        *list, [&](const JinjaValue& one) { return JinjaValue::are_same(one, item, budget); });
  }
  if (container.as<JinjaValue::Mapping>() != nullptr) {
    return item.as_text() != nullptr && container.find(*item.as_text(), budget) != nullptr;
  }
  if (container.is_undefined()) {
    return false;
  }
  throw DataError(fmt::format("a {} can't contain a {}", container.type_name(), item.type_name()));
}

}  // namespace trireme
