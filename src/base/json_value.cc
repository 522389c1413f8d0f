#include "src/base/json_value.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {

JsonValue::JsonValue() : JsonValue(nlohmann::json::object()) {}
JsonValue::JsonValue(nlohmann::json value)
    : value_(std::make_unique<nlohmann::json>(std::move(value))) {}
JsonValue JsonValue::parse(std::string_view text) { return JsonValue(parse_json(text)); }
JsonValue::JsonValue(const JsonValue& other) : JsonValue(*other) {}
JsonValue::JsonValue(JsonValue&& other) noexcept = default;
JsonValue& JsonValue::operator=(JsonValue other) noexcept {
  value_.swap(other.value_);
  return *this;
}
JsonValue::~JsonValue() = default;

}  // namespace trireme
