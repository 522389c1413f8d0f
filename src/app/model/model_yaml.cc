#include "src/app/model/model_yaml.h"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/train/run/fingerprint.h"
#include "src/train/run/model_fingerprint.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

// Every scalar of JSON is one of YAML.
std::string lines_of(const ordered_json& section, const std::string& indent) {
  std::string text;
  for (const auto& [name, value] : section.items()) {
    text += value.is_object()
                ? fmt::format("{}{}:\n{}", indent, name, lines_of(value, indent + "  "))
                : fmt::format("{}{}: {}\n", indent, name, value.dump());
  }
  return text;
}

}  // namespace

ordered_json model_section(const ModelConfig& model) {
  ordered_json section = {{"family", family_name(model.family)}};
  const nlohmann::json usual = model_fingerprint(ModelConfig());
  const nlohmann::json fields = readable_numbers(model_fingerprint(model));
  for (const auto& [name, value] : fields.items()) {
    if (value != usual.at(name)) {
      std::string pointer = configuration_key(name).substr(std::string("model").size());
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      section[ordered_json::json_pointer(pointer)] = value;
    }
  }
  return section;
}

std::string model_yaml(const ordered_json& section) { return "model:\n" + lines_of(section, "  "); }

}  // namespace trireme
