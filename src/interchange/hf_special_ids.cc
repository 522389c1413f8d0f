#include "src/interchange/hf_special_ids.h"

#include <algorithm>
#include <array>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::array kSpecialIds = {"bos_token_id", "eos_token_id", "pad_token_id"};

struct ClassIds {
  std::int64_t bos = -1;  // -1: none
  std::int64_t eos = -1;
};

ClassIds ids_of_class(std::string_view model_type) {
  return model_type == "gpt2" || model_type == "jais"       ? ClassIds{50256, 50256}
         : model_type == "llama" || model_type == "mistral" ? ClassIds{1, 2}
                                                            : ClassIds{};
}

// Throws DataError for an id that the model can neither read nor predict. Models without padding
// may have any number in its place.
void check_in_vocabulary(std::string_view name, const json& ids, std::int64_t vocab) {
  for (const json& id : ids) {
    const bool is_token = id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() < vocab;
    if (!is_token && name != "pad_token_id") {
      throw DataError(
          fmt::format("field '{}' is {}, but vocab_size is {}", name, id.dump(), vocab));
    }
  }
}

// An id, or a list of ids.
json special_ids_of(const json& object, std::int64_t vocab) {
  json ids = json::object();
  for (const char* name : kSpecialIds) {
    const auto id = object.find(name);
    if (id == object.end() || id->is_null()) {
      continue;
    }
    const json list = id->is_array() ? *id : json::array({*id});
    if (!std::all_of(list.begin(), list.end(),
                     [](const json& n) { return n.is_number_integer(); })) {
      throw DataError(fmt::format("field '{}' is neither a token id nor a list of them", name));
    }
    check_in_vocabulary(name, list, vocab);
    ids[name] = *id;
  }
  return ids;
}

}  // namespace

JsonValue config_special_ids(const json& config, std::string_view model_type, std::int64_t vocab) {
  json ids = special_ids_of(config, vocab);
  const ClassIds own = ids_of_class(model_type);
  for (const auto& [name, id] : {std::pair("bos_token_id", own.bos), {"eos_token_id", own.eos}}) {
    if (!config.contains(name) && id >= 0 && id < vocab) {
      ids[name] = id;
    }
  }
  return JsonValue(std::move(ids));
}

JsonValue parse_generation_ends(std::string_view text, std::int64_t vocab) {
  const json object = parse_json(text);
  if (!object.is_object()) {
    throw DataError("it is not a JSON object");
  }
  const json ids = special_ids_of(object, vocab);
  const auto ends = ids.find("eos_token_id");
  return JsonValue(ends == ids.end()  ? json::array()
                   : ends->is_array() ? *ends
                                      : json::array({*ends}));
}

}  // namespace trireme
