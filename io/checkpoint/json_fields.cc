#include "io/checkpoint/json_fields.h"

namespace trireme {
namespace {

[[noreturn]] void refuse(const char* name, const char* expected) {
  throw DataError(fmt::format("field '{}' is not {}", name, expected));
}

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& origin) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw DataError(fmt::format("{} is not JSON: {}", origin, e.what()));
  }
}

const nlohmann::json& field(const nlohmann::json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end()) {
    throw DataError(fmt::format("field '{}' is missing", name));
  }
  return *found;
}

std::string text_field(const nlohmann::json& object, const char* name) {
  const auto& value = field(object, name);
  return value.is_string() ? value.get<std::string>() : (refuse(name, "a text"), "");
}

const nlohmann::json& object_field(const nlohmann::json& object, const char* name) {
  const auto& value = field(object, name);
  if (!value.is_object()) {
    refuse(name, "an object");
  }
  return value;
}

const nlohmann::json& array_field(const nlohmann::json& object, const char* name) {
  const auto& value = field(object, name);
  if (!value.is_array()) {
    refuse(name, "an array");
  }
  return value;
}

bool flag_field(const nlohmann::json& object, const char* name) {
  const auto& value = field(object, name);
  return value.is_boolean() ? value.get<bool>() : (refuse(name, "true or false"), false);
}

std::int64_t count_value(const nlohmann::json& value, const char* name, std::int64_t most) {
  if (!value.is_number_unsigned() || most < 0 ||
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) {
    throw DataError(fmt::format("field '{}' is not a whole number from 0 to {}", name, most));
  }
  return value.get<std::int64_t>();
}

std::int64_t count_field(const nlohmann::json& object, const char* name, std::int64_t most) {
  return count_value(field(object, name), name, most);
}

std::vector<std::int64_t> counts_field(const nlohmann::json& object, const char* name) {
  std::vector<std::int64_t> values;
  for (const auto& value : array_field(object, name)) {
    values.push_back(count_value(value, name));
  }
  return values;
}

}  // namespace trireme
