// The filters, tests, methods and functions of templates, as Jinja and Python have them. Pure
// functions, but for the budget that they take from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/chat/jinja_value.h"

namespace trireme {

// JinjaArguments are those of a call, without the value that it is applied to.
struct JinjaArguments {
  std::vector<JinjaValue> values;
  std::vector<std::string> names;  // of the last values

  // Returns the argument with this index and name, or null. index: negative if it has only a name.
  const JinjaValue* find(int index, std::string_view name) const;
  // Throws DataError if there are more, or one has another name.
  void expect(std::size_t most, const std::vector<std::string_view>& known = {}) const;
};

bool is_jinja_filter(std::string_view name);
bool is_jinja_test(std::string_view name);
bool is_jinja_method(std::string_view name);

// They throw DataError, without a line.
JinjaValue apply_jinja_filter(const std::string& name, const JinjaValue& value,
                              const JinjaArguments& arguments, JinjaBudget& budget);
bool apply_jinja_test(const std::string& name, const JinjaValue& value,
                      const JinjaArguments& arguments, JinjaBudget& budget);
JinjaValue call_jinja_method(const JinjaValue& value, const std::string& name,
                             const JinjaArguments& arguments, JinjaBudget& budget);
// raise_exception, namespace, range and dict.
JinjaValue call_jinja_function(const std::string& name, const JinjaArguments& arguments,
                               JinjaBudget& budget);

// Returns the items over which a loop goes: of a list, the keys of a mapping, or the characters of
// a text. Throws DataError for anything else.
JinjaList items_of(const JinjaValue& value, JinjaBudget& budget);
// Returns value[key] or value.key; what is not there is undefined.
JinjaValue member_of(const JinjaValue& value, const JinjaValue& key, JinjaBudget& budget);
JinjaValue slice_of(const JinjaValue& value, const JinjaValue* first, const JinjaValue* last,
                    const JinjaValue* step, JinjaBudget& budget);
// Computes a + b, and the like with - * / // % ~.
JinjaValue computed(const std::string& sign, const JinjaValue& a, const JinjaValue& b,
                    JinjaBudget& budget);

}  // namespace trireme
