#include "io/checkpoint/exported_metadata.h"

#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr const char* kLabelKey = "trireme_label";

}  // namespace

std::map<std::string, std::string> exported_metadata(const StepFolder& step) {
  std::map<std::string, std::string> metadata = {{"format", "pt"},
                                                 {"trireme_manifest_sha256", step.manifest_sha256}};
  if (step.manifest->meta.label) {
    metadata[kLabelKey] = to_json(*step.manifest->meta.label).dump();
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
