#include "src/interchange/config_fields.h"

#include <cmath>
#include <vector>

#include <fmt/ranges.h>

#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {

const nlohmann::json* ConfigFields::find(const char* name) {
  known_.insert(name);
  const auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

std::int64_t ConfigFields::count(const char* name, std::optional<std::int64_t> otherwise) {
  return find(name) == nullptr && otherwise ? *otherwise : count_field(object_, name);
}

double ConfigFields::real(const char* name, std::optional<double> otherwise) {
  const nlohmann::json* const value = find(name);
  if (value == nullptr && otherwise) {
    return *otherwise;
  }
  if (value == nullptr || !value->is_number() || !std::isfinite(value->get<double>())) {
    throw DataError(fmt::format("field '{}{}' is not a finite number", prefix_, name));
  }
  return value->get<double>();
}

bool ConfigFields::flag(const char* name, bool otherwise) {
  // Python takes None for false.
  return find(name) != nullptr ? flag_field(object_, name) : otherwise && !has(name);
}

std::string ConfigFields::text(const char* name, std::optional<std::string> otherwise) {
  return find(name) == nullptr && otherwise ? *otherwise : text_field(object_, name);
}

void ConfigFields::must_be(const char* name, const nlohmann::json& value) {
  const nlohmann::json* const own = find(name);
  const bool is_no_longer_true = own == nullptr && has(name) && value == true;
  if (is_no_longer_true || (own != nullptr && *own != value)) {
    throw DataError(fmt::format("its option '{}{}' is {}: this program computes only {}", prefix_,
                                name, own == nullptr ? "null" : printable(own->dump()),
                                value.dump()));
  }
}

void ConfigFields::ignore(std::initializer_list<const char*> names) {
  known_.insert(names.begin(), names.end());
}

void ConfigFields::finish() const {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : object_.items()) {
    if (!known_.contains(name) && !value.is_null()) {
      unknown.push_back(printable(prefix_ + name));
    }
  }
  if (!unknown.empty()) {
    throw DataError(fmt::format(
        "unknown options, which might change what the model computes: {}; if they do not, remove "
        "them from a copy of the file",
        fmt::join(unknown, ", ")));
  }
}

}  // namespace trireme
