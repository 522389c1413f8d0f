#include "io/checkpoint/exported_metadata.h"

#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr const char* kPrefix = "trireme_";
constexpr const char* kLabelKey = "trireme_label";

}  // namespace

std::map<std::string, std::string> exported_facts(const StepFolder& step) {
  std::map<std::string, std::string> facts = {{"manifest_sha256", step.manifest_sha256}};
  if (step.manifest->meta.label) {
    facts["label"] = to_json(*step.manifest->meta.label).dump();
  }
  return facts;
}

std::map<std::string, std::string> exported_metadata(const StepFolder& step) {
  std::map<std::string, std::string> metadata = {{"format", "pt"}};
  for (const auto& [name, value] : exported_facts(step)) {
    metadata[kPrefix + name] = value;
  }
  return metadata;
}

std::optional<Label> exported_label(const std::map<std::string, std::string>& metadata) {
  const auto at = metadata.find(kLabelKey);
  if (at == metadata.end()) {
    return kUnlabelled;
  }
  try {
    return label_of({{"label", parse_json(at->second)}});
  } catch (const DataError& error) {
    throw data_error_in(kLabelKey, error);
  }
}

}  // namespace trireme
