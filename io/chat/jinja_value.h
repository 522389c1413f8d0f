// JinjaValue is a value of a template: what JSON can hold, the value of a name that is not defined,
// a namespace, and a function. Copies share texts, lists and mappings; only a namespace changes
// after it was made. A value; one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/chat/jinja_budget.h"

namespace trireme {

class JinjaValue;
using JinjaList = std::vector<JinjaValue>;
using JinjaMapping = std::vector<std::pair<std::string, JinjaValue>>;  // in the order of insertion

class JinjaValue {
 public:
  static constexpr int kMostDepth = 100;

  struct Undefined {
    std::string name;
  };
  struct None {};
  struct Namespace {
    std::shared_ptr<JinjaMapping> members;
  };
  struct Function {
    std::string name;
  };
  using Text = std::shared_ptr<const std::string>;
  using List = std::shared_ptr<const JinjaList>;
  using Mapping = std::shared_ptr<const JinjaMapping>;

  JinjaValue() : value_(None{}) {}
  template <class T>
  static JinjaValue of(T value) {
    JinjaValue made;
    made.value_ = std::move(value);
    return made;
  }
  static JinjaValue text(std::string text) {
    return of(Text(std::make_shared<const std::string>(std::move(text))));
  }
  static JinjaValue text(std::string_view text) { return JinjaValue::text(std::string(text)); }
  static JinjaValue text(const char* text) { return JinjaValue::text(std::string(text)); }
  // Throw DataError if values are nested deeper than kMostDepth, or one is a namespace.
  static JinjaValue list(JinjaList list);
  static JinjaValue mapping(JinjaMapping mapping);
  static JinjaValue space(JinjaMapping members);
  static JinjaValue from_json(const nlohmann::ordered_json& json);

  // Returns null if the value is of another type.
  template <class T>
  const T* as() const {
    return std::get_if<T>(&value_);
  }
  const std::string* as_text() const;
  const JinjaList* as_list() const;
  const JinjaMapping* as_mapping() const;  // of a namespace, too
  bool is_undefined() const { return as<Undefined>() != nullptr; }
  bool is_none() const { return as<None>() != nullptr; }
  bool is_number() const;  // also of a truth value, as in Python
  double number() const;   // precondition: is_number()
  // Returns whether it is a whole number or a truth value, and then its value.
  bool is_whole() const;
  std::int64_t whole() const;

  bool truth() const;
  const char* type_name() const;        // as Python calls it
  int depth() const { return depth_; }  // of lists and mappings in one another
  // Returns the value of a key of a mapping, or null.
  const JinjaValue* find(std::string_view key, JinjaBudget& budget) const;
  // Returns whether they are equal, as == of Python says.
  static bool are_same(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget);

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, Text, List, Mapping, Namespace,
               Function>
      value_;
  int depth_ = 0;
};

// Returns the value of a key, or null.
JinjaValue* find_key(JinjaMapping& mapping, std::string_view key, JinjaBudget& budget);
// Returns what `{{ value }}` prints. Throws DataError for a list, a mapping, or what is nested
// deeply, which only tojson prints.
std::string text_of_value(const JinjaValue& value);
// Returns the value as json.dumps(ensure_ascii=False) writes it. indent: negative for one line.
// Throws DataError for what JSON has no form for.
std::string json_of_value(const JinjaValue& value, std::int64_t indent, JinjaBudget& budget);
// Compares numbers, or texts. Throws DataError for other types. Negative: a is less than b.
int compared(const JinjaValue& a, const JinjaValue& b, JinjaBudget& budget);
bool contains(const JinjaValue& container, const JinjaValue& item, JinjaBudget& budget);

}  // namespace trireme
