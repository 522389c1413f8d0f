#include "src/train/text/text_origin.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/train/saving/first_weights.h"
#include "src/train/start/tokenizer_identity.h"
#include "src/train/text/step_tokenizer.h"

namespace trireme {
namespace {

constexpr const char* kEnds = "eos_token_id";

// record: what an import kept of the model's configuration.
std::vector<std::int32_t> ends_in(const nlohmann::json& record, std::int64_t vocab) {
  std::vector<std::int32_t> ends;
  const nlohmann::json& imported = object_field(record, "imported");
  nlohmann::json value = nlohmann::json::array();
  if (imported.contains(kGenerationEndsField)) {
    value = imported.at(kGenerationEndsField);
  } else if (imported.contains("special_ids")) {
    value = object_field(imported, "special_ids").value(kEnds, value);
  }
  for (const nlohmann::json& id : value.is_array() ? value : nlohmann::json::array({value})) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= static_cast<std::uint64_t>(vocab)) {
      throw DataError(fmt::format("field '{}' has {}, not a token id from 0 to {}", kEnds,
                                  id.dump(), vocab - 1));
    }
    ends.push_back(id.get<std::int32_t>());
  }
  return ends;
}

void add(const StepFolder& step, std::int64_t vocab, TextOrigin& origin) {
  origin.folders.push_back(step.path);
  const nlohmann::json& extra = *step.manifest->meta.extra;
  if (extra.contains("imported")) {
    origin.ends = ends_in(extra, vocab);
    origin.has_no_other_ends = object_field(extra, "imported").contains("special_ids");
  }
  if (extra.contains(kFirstWeightsField)) {
    origin.has_no_other_ends = false;
  }
  if (const std::optional<FirstWeights> first = find_first_weights(step)) {
    origin.ends = ends_in(object_field(extra, kFirstWeightsField), vocab);
    if (first->is_there) {
      origin.folders.push_back(first->folder);
    }
  }
  if (extra.contains(kTokenizerFolderField)) {
    origin.folders.emplace_back(text_field(extra, kTokenizerFolderField));
  }
}

}  // namespace

TextOrigin text_origin_of(const StepFolder& step, const StepFolder* base, std::int64_t vocab) {
  TextOrigin origin;
  add(step, vocab, origin);
  if (base != nullptr) {
    add(*base, vocab, origin);
    origin.has_no_other_ends = false;  // the adapters have learned
  }
  if (!origin.ends.empty() && changed_tokenizer(step, base)) {
    origin.ends.clear();
  }
  return origin;
}

std::vector<std::int32_t> all_ends(const TextOrigin& origin, std::int32_t end_of_document) {
  std::vector<std::int32_t> ends = origin.ends;
  if (!origin.has_no_other_ends && end_of_document >= 0) {
    ends.push_back(end_of_document);
  }
  return ends;
}

}  // namespace trireme
