#include "src/base/json_fields.h"

#include <set>

#include <nlohmann/json.hpp>

namespace trireme {
namespace {

using nlohmann::json;

constexpr int kMostDepth = 32;

// Follows the parser and refuses what JSON leaves open.
class Guard {
 public:
  bool operator()(int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMostDepth) {
      throw DataError(fmt::format("nested deeper than {} levels", kMostDepth));
    }
    if (event == json::parse_event_t::object_start) {
      keys_.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys_.pop_back();
    } else if (event == json::parse_event_t::key &&
               !keys_.back().insert(parsed.get<std::string>()).second) {
      throw DataError(fmt::format("the key {} stands there twice", parsed.dump()));
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

const json& expect(bool holds, const json& value, const char* name, const char* expected) {
  if (!holds) {
    throw DataError(fmt::format("field '{}' is not {}", name, expected));
  }
  return value;
}

std::int64_t count_value(const json& value, const char* name, std::int64_t least,
                         std::int64_t most) {
  if (!value.is_number_unsigned() || most < 0 ||
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(most) ||
      value.get<std::int64_t>() < least) {
    throw DataError(fmt::format("field '{}' is {}, not a whole number from {} to {}", name,
                                value.is_number() ? value.dump() : value.type_name(), least, most));
  }
  return value.get<std::int64_t>();
}

}  // namespace

json parse_json(std::string_view text) {
  try {
    return json::parse(text, Guard());
  } catch (const json::exception& error) {
    throw DataError(fmt::format("not JSON: {}", error.what()));
  }
}

const json& field(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  if (found == object.end()) {
    throw DataError(fmt::format("field '{}' is missing", name));
  }
  return *found;
}

const std::string& text_field(const json& object, const char* name) {
  const json& value = field(object, name);
  return expect(value.is_string(), value, name, "a text").get_ref<const std::string&>();
}

const json& object_field(const json& object, const char* name) {
  const json& value = field(object, name);
  return expect(value.is_object(), value, name, "an object");
}

const json& array_field(const json& object, const char* name) {
  const json& value = field(object, name);
  return expect(value.is_array(), value, name, "a list");
}

bool flag_field(const json& object, const char* name) {
  const json& value = field(object, name);
  return expect(value.is_boolean(), value, name, "true or false").get<bool>();
}

std::int64_t count_field(const json& object, const char* name, std::int64_t least,
                         std::int64_t most) {
  return count_value(field(object, name), name, least, most);
}

std::vector<std::int64_t> counts_field(const json& object, const char* name) {
  std::vector<std::int64_t> values;
  for (const json& value : array_field(object, name)) {
    values.push_back(count_value(value, name, 0, kMostCount));
  }
  return values;
}

}  // namespace trireme
