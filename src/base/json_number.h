// Reads numbers from JSON, whole or not, with the errors of src/base/json_fields.h.
#pragma once

#include <cmath>

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

inline double finite_field(const nlohmann::json& object, const char* name) {
  const nlohmann::json& value = field(object, name);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    throw DataError(fmt::format("field '{}' is not a finite number", name));
  }
  return value.get<double>();
}

}  // namespace trireme
