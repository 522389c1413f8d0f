#include <algorithm>

#include "io/chat/jinja_functions.h"
#include "io/chat/python_text.h"
#include "src/base/error.h"

namespace trireme {
namespace {

// result: what has overflowed, or not, by the time of the call.
std::int64_t checked(bool overflows, const std::int64_t& result) {
  if (overflows) {
    throw DataError("a number is larger than 64 bits hold");
  }
  return result;
}

JinjaValue whole_result(const std::string& sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (sign == "+") {
    return JinjaValue::of(checked(__builtin_add_overflow(a, b, &result), result));
  }
  if (sign == "-") {
    return JinjaValue::of(checked(__builtin_sub_overflow(a, b, &result), result));
  }
  if (sign == "*") {
    return JinjaValue::of(checked(__builtin_mul_overflow(a, b, &result), result));
  }
  if (b == 0 || (b == -1 && a == INT64_MIN)) {
    throw DataError("a division by zero, or a number that 64 bits do not hold");
  }
  if (sign == "/") {
    return JinjaValue::of(static_cast<double>(a) / static_cast<double>(b));
  }
  // Python rounds the quotient down.
  const std::int64_t rest = a % b;
  const bool below = rest != 0 && (rest < 0) != (b < 0);
  return JinjaValue::of(sign == "%" ? rest + (below ? b : 0) : a / b - (below ? 1 : 0));
}

JinjaValue number_result(const std::string& sign, double a, double b) {
  if (sign == "+" || sign == "-") {
    return JinjaValue::of(sign == "+" ? a + b : a - b);
  }
  if (sign == "*") {
    return JinjaValue::of(a * b);
  }
  if (b == 0 || sign != "/") {
    throw DataError(fmt::format("{} of these numbers is not supported", sign));
  }
  return JinjaValue::of(a / b);
}

// Returns where an index of Python's points in something of this size.
std::int64_t place(const JinjaValue* index, std::int64_t otherwise, std::int64_t size,
                   std::int64_t least, std::int64_t most) {
  if (index == nullptr || index->is_none()) {
    return otherwise;
  }
  if (!index->is_whole()) {
    throw DataError(fmt::format("a {} is no index", index->type_name()));
  }
  const std::int64_t at = index->whole();
  return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, least, most);
}

}  // namespace

JinjaList items_of(const JinjaValue& value, JinjaBudget& budget) {
  JinjaList items;
  if (const JinjaList* list = value.as_list()) {
    budget.take(std::ssize(*list) * static_cast<std::int64_t>(sizeof(JinjaValue)));
    return *list;
  }
  if (value.as<JinjaValue::Mapping>() != nullptr) {
    for (const auto& [key, item] : *value.as_mapping()) {
      budget.take(std::ssize(key));
      items.push_back(JinjaValue::text(key));
    }
    return items;
  }
  if (const std::string* text = value.as_text()) {
    budget.take(std::ssize(*text) * static_cast<std::int64_t>(sizeof(std::size_t)));
    const std::vector<std::size_t> starts = character_starts(*text);
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
      budget.take(64);
      items.push_back(JinjaValue::text(text->substr(starts[i], starts[i + 1] - starts[i])));
    }
    return items;
  }
  if (value.is_undefined()) {
    return items;
  }
  throw DataError(fmt::format("a {} is nothing to go over", value.type_name()));
}

JinjaValue member_of(const JinjaValue& value, const JinjaValue& key, JinjaBudget& budget) {
  if (const auto* missing = value.as<JinjaValue::Undefined>()) {
    throw DataError(fmt::format("'{}' is undefined", missing->name));
  }
  const std::string name = key.as_text() == nullptr ? "" : *key.as_text();
  if (const JinjaValue* found = key.as_text() == nullptr ? nullptr : value.find(name, budget)) {
    return *found;
  }
  const JinjaList* list = value.as_list();
  if (key.is_whole() && (list != nullptr || value.as_text() != nullptr)) {
    if (list == nullptr) {
      budget.take(std::ssize(*value.as_text()) * static_cast<std::int64_t>(sizeof(std::size_t)));
    }
    const std::vector<std::size_t> starts =
        list != nullptr ? std::vector<std::size_t>() : character_starts(*value.as_text());
    const std::int64_t size = list != nullptr ? std::ssize(*list) : std::ssize(starts) - 1;
    const std::int64_t at = key.whole() < 0 ? key.whole() + size : key.whole();
    if (at >= 0 && at < size) {
      const auto i = static_cast<std::size_t>(at);
      return list != nullptr
                 ? (*list)[i]
                 : JinjaValue::text(value.as_text()->substr(starts[i], starts[i + 1] - starts[i]));
    }
  }
  return JinjaValue::of(JinjaValue::Undefined{key.as_text() != nullptr ? name
                                              : key.is_whole()         ? std::to_string(key.whole())
                                                                       : "item"});
}

JinjaValue slice_of(const JinjaValue& value, const JinjaValue* first, const JinjaValue* last,
                    const JinjaValue* step, JinjaBudget& budget) {
  if (value.as_list() == nullptr && value.as_text() == nullptr) {
    throw DataError(fmt::format("a {} can't be sliced", value.type_name()));
  }
  const JinjaList items = items_of(value, budget);
  const std::int64_t size = std::ssize(items);
  const bool has_step = step != nullptr && !step->is_none();
  if (has_step && (!step->is_whole() || step->whole() == 0)) {
    throw DataError("the step of a slice is a whole number other than 0");
  }
  const std::int64_t by = has_step ? std::clamp(step->whole(), -size - 1, size + 1) : 1;
  const std::int64_t begin =
      by > 0 ? place(first, 0, size, 0, size) : place(first, size - 1, size, -1, size - 1);
  const std::int64_t end =
      by > 0 ? place(last, size, size, 0, size) : place(last, -1, size, -1, size - 1);
  JinjaList kept;
  for (std::int64_t i = begin; by > 0 ? i < end : i > end; i += by) {
    kept.push_back(items[static_cast<std::size_t>(i)]);
  }
  JinjaValue list = JinjaValue::list(std::move(kept));
  return value.as_list() != nullptr ? list : apply_jinja_filter("join", list, {}, budget);
}

JinjaValue computed(const std::string& sign, const JinjaValue& a, const JinjaValue& b,
                    JinjaBudget& budget) {
  const bool are_texts = a.as_text() != nullptr && b.as_text() != nullptr;
  if (sign == "~" || (sign == "+" && are_texts)) {
    std::string text = text_of_value(a) + text_of_value(b);
    budget.take(static_cast<std::int64_t>(text.size()));
    return JinjaValue::text(std::move(text));
  }
  if (sign == "+" && a.as_list() != nullptr && b.as_list() != nullptr) {
    JinjaList all = items_of(a, budget);
    const JinjaList more = items_of(b, budget);
    all.insert(all.end(), more.begin(), more.end());
    return JinjaValue::list(std::move(all));
  }
  for (const JinjaValue* one : {&a, &b}) {
    if (const auto* missing = one->as<JinjaValue::Undefined>()) {
      throw DataError(fmt::format("'{}' is undefined", missing->name));
    }
  }
  if (!a.is_number() || !b.is_number()) {
    throw DataError(
        fmt::format("a {} {} a {} is not supported", a.type_name(), sign, b.type_name()));
  }
  return a.is_whole() && b.is_whole() ? whole_result(sign, a.whole(), b.whole())
                                      : number_result(sign, a.number(), b.number());
}

}  // namespace trireme
