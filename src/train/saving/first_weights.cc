#include "src/train/saving/first_weights.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr const char* kFirstFolder = "base";
constexpr const char* kFirstDigest = "base_sha256";
constexpr const char* kFirstImported = "imported";
constexpr const char* kFirstTokenizer = "tokenizer_digest";

}  // namespace

std::optional<JsonValue> first_weights_of(const StepFolder& base,
                                          const std::string& tokenizer_digest) {
  if (std::optional<JsonValue> earlier = recorded_first_weights(*base.manifest)) {
    return earlier;
  }
  const nlohmann::json& extra = *base.manifest->meta.extra;
  if (!extra.contains(kFirstImported)) {
    return std::nullopt;
  }
  nlohmann::json record = {
      {kFirstFolder, std::filesystem::absolute(base.path).lexically_normal().string()},
      {kFirstDigest, base.manifest_sha256},
      {kFirstImported, nlohmann::json::object()},
      {kFirstTokenizer, tokenizer_digest}};
  const nlohmann::json& imported = object_field(extra, kFirstImported);
  for (const char* const name : {"model_type", "special_ids", kGenerationEndsField}) {
    if (imported.contains(name)) {
      record[kFirstImported][name] = imported.at(name);
    }
  }
  return JsonValue(std::move(record));
}

std::optional<JsonValue> recorded_first_weights(const Manifest& manifest) {
  const nlohmann::json& extra = *manifest.meta.extra;
  if (!extra.contains(kFirstWeightsField)) {
    return std::nullopt;
  }
  return JsonValue(extra.at(kFirstWeightsField));
}

std::optional<FirstWeights> find_first_weights(const StepFolder& step) {
  const nlohmann::json& extra = *step.manifest->meta.extra;
  if (!extra.contains(kFirstWeightsField)) {
    return std::nullopt;
  }
  const nlohmann::json& record = object_field(extra, kFirstWeightsField);
  const std::string& digest = text_field(record, kFirstDigest);
  FirstWeights found{.folder = text_field(record, kFirstFolder)};
  if (record.contains(kFirstTokenizer)) {
    found.tokenizer_digest = text_field(record, kFirstTokenizer);
  }
  try {
    std::vector<std::string> skipped;
    found.is_there = find_step(found.folder, skipped).manifest_sha256 == digest;
  } catch (const Error&) {
    // It is gone, or this user may not read it.
  }
  return found;
}

}  // namespace trireme
