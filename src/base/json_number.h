// One more kind of field for src/base/json_fields.h: a number, whole or not.
#pragma once

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {

inline double number_field(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = field(object, name);
  if (!value.is_number()) {
    throw DataError(fmt::format("field '{}' is not a number", name));
  }
  return value.get<double>();
}

}  // namespace trireme
