// JsonValue: JSON to be held by structs whose headers need not know nlohmann's, which each file
// that includes it takes a second to compile. A value; an empty object unless made of something.
// One that was moved from may only be assigned to or destroyed.
#pragma once

#include <memory>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class JsonValue {
 public:
  JsonValue();
  explicit JsonValue(nlohmann::json value);
  // DataError as from parse_json().
  static JsonValue parse(std::string_view text);
  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(JsonValue other) noexcept;
  ~JsonValue();

  nlohmann::json& operator*() { return *value_; }
  const nlohmann::json& operator*() const { return *value_; }
  nlohmann::json* operator->() { return value_.get(); }
  const nlohmann::json* operator->() const { return value_.get(); }

 private:
  std::unique_ptr<nlohmann::json> value_;
};

}  // namespace trireme
