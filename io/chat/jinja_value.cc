#include "io/chat/jinja_value.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "io/chat/python_text.h"
#include "src/base/error.h"

namespace trireme {
namespace {

std::string line_break(std::int64_t indent, std::int64_t level) {
  return indent < 0 ? "" : "\n" + std::string(static_cast<std::size_t>(indent * level), ' ');
}

std::string json_of_list(const JinjaList& list, std::int64_t indent, std::int64_t level) {
  std::string text = "[";
  for (const JinjaValue& item : list) {
    text += text.size() == 1 ? "" : indent < 0 ? ", " : ",";
    text += line_break(indent, level + 1) + json_of_value(item, indent, level + 1);
  }
  return text + (list.empty() ? "" : line_break(indent, level)) + "]";
}

std::string json_of_mapping(const JinjaMapping& mapping, std::int64_t indent, std::int64_t level) {
  std::string text = "{";
  for (const auto& [key, item] : mapping) {
    text += text.size() == 1 ? "" : indent < 0 ? ", " : ",";
    text += line_break(indent, level + 1) + json_quoted(key) + ": " +
            json_of_value(item, indent, level + 1);
  }
  return text + (mapping.empty() ? "" : line_break(indent, level)) + "}";
}

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

bool same_mappings(const JinjaMapping& a, const JinjaMapping& b) {
  return a.size() == b.size() && std::ranges::all_of(a, [&](const auto& one) {
           const auto other =
               std::ranges::find(b, one.first, [](const auto& p) { return p.first; });
           return other != b.end() && one.second == other->second;
         });
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
        throw DataError(fmt::format("the number {} is larger than 2^63 - 1", number));
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

const JinjaValue* JinjaValue::find(std::string_view key) const {
  const JinjaMapping* mapping = as_mapping();
  if (mapping == nullptr) {
    return nullptr;
  }
  const auto found = std::ranges::find(*mapping, key, [](const auto& p) { return p.first; });
  return found == mapping->end() ? nullptr : &found->second;
}

bool operator==(const JinjaValue& a, const JinjaValue& b) {
  if (a.is_number() && b.is_number()) {
    return a.is_whole() && b.is_whole() ? a.whole() == b.whole() : a.number() == b.number();
  }
  if (a.value_.index() != b.value_.index()) {
    return false;
  }
  if (const std::string* text = a.as_text()) {
    return *text == *b.as_text();
  }
  if (const JinjaList* list = a.as_list()) {
    return *list == *b.as_list();
  }
  if (a.as<JinjaValue::Mapping>() != nullptr) {
    return same_mappings(*a.as_mapping(), *b.as_mapping());
  }
  if (const auto* space = a.as<JinjaValue::Namespace>()) {
    return space->members == b.as<JinjaValue::Namespace>()->members;
  }
  const auto* function = a.as<JinjaValue::Function>();
  return function == nullptr || function->name == b.as<JinjaValue::Function>()->name;
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

std::string json_of_value(const JinjaValue& value, std::int64_t indent, std::int64_t level) {
  if (value.is_none()) {
    return "null";
  }
  if (const bool* truth = value.as<bool>()) {
    return *truth ? "true" : "false";
  }
  if (value.is_whole()) {
    return std::to_string(value.whole());
  }
  if (value.is_number() && std::isfinite(value.number())) {
    return python_digits(value.number());
  }
  if (const std::string* text = value.as_text()) {
    return json_quoted(*text);
  }
  if (const JinjaList* list = value.as_list()) {
    return json_of_list(*list, indent, level);
  }
  if (value.as<JinjaValue::Mapping>() != nullptr) {
    return json_of_mapping(*value.as_mapping(), indent, level);
  }
  throw DataError(fmt::format("JSON has no form for a {}", value.type_name()));
}

int compared(const JinjaValue& a, const JinjaValue& b) {
  if (a.is_whole() && b.is_whole()) {
    return a.whole() < b.whole() ? -1 : a.whole() > b.whole() ? 1 : 0;
  }
  if (a.is_number() && b.is_number()) {
    return a.number() < b.number() ? -1 : a.number() > b.number() ? 1 : 0;
  }
  if (a.as_text() != nullptr && b.as_text() != nullptr) {
    return a.as_text()->compare(*b.as_text());
  }
  throw DataError(fmt::format("a {} and a {} are not ordered", a.type_name(), b.type_name()));
}

bool contains(const JinjaValue& container, const JinjaValue& item) {
  if (const std::string* text = container.as_text(); text != nullptr && item.as_text() != nullptr) {
    return text->find(*item.as_text()) != std::string::npos;
  }
  if (const JinjaList* list = container.as_list()) {
    return std::ranges::find(*list, item) != list->end();
  }
  if (container.as<JinjaValue::Mapping>() != nullptr) {
    return item.as_text() != nullptr && container.find(*item.as_text()) != nullptr;
  }
  if (container.is_undefined()) {
    return false;
  }
  throw DataError(fmt::format("a {} can't contain a {}", container.type_name(), item.type_name()));
}

}  // namespace trireme
