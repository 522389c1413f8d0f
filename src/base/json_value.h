// JsonValue holds JSON in structs whose headers must not include nlohmann's, which takes a second
// to compile in each source file. A value; an empty object by default. A moved-from object may only
// be assigned to or destroyed.
#pragma once

#include <memory>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class JsonValue {
 public:
  JsonValue();
  explicit JsonValue(nlohmann::json value);
  // Throws DataError like parse_json().
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
