#include "io/tokens/token_template.h"

#include <nlohmann/json.hpp>

#include "io/tokens/text_step.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostTemplateId = (std::int64_t{1} << 24) - 1;

}  // namespace

TokenTemplate::TokenTemplate(const nlohmann::json& value) {
  if (!value.is_null()) {
    add(value);
  }
}

void TokenTemplate::add(const nlohmann::json& value) {
  const std::string& type = text_field(value, "type");
  if (type == "Sequence") {
    check_fields(value, "post-processor Sequence", {"type", "processors"});
    for (const nlohmann::json& each : array_field(value, "processors")) {
      add(each);
    }
    return;
  }
  if (type == "ByteLevel") {
    check_fields(value, "post-processor ByteLevel",
                 {"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return;
  }
  if (type != "TemplateProcessing") {
    refuse_type("post-processor", type);
  }
  check_fields(value, "post-processor TemplateProcessing",
               {"type", "single", "pair", "special_tokens"});
  const nlohmann::json& known = object_field(value, "special_tokens");
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
  bool seen_text = false;
  for (const nlohmann::json& each : array_field(value, "single")) {
    if (each.contains("Sequence")) {
      if (std::exchange(seen_text, true)) {
        throw DataError("the post-processor's template has the text twice");
      }
      continue;
    }
    const std::string& name = text_field(object_field(each, "SpecialToken"), "id");
    const nlohmann::json& special = object_field(known, name.c_str());
    for (const std::int64_t id : counts_field(special, "ids")) {
      if (id > kMostTemplateId) {
        throw DataError(fmt::format("the post-processor's token '{}' has the id {}", name, id));
      }
      (seen_text ? after : before).push_back(static_cast<std::int32_t>(id));
    }
  }
  if (!seen_text) {
    throw DataError("the post-processor's template lacks the text");
  }
  before_.insert(before_.begin(), before.begin(), before.end());
  after_.insert(after_.end(), after.begin(), after.end());
}

}  // namespace trireme
