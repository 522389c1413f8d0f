// The ids of the tokens that begin and end a text, as Hugging Face's transformers read them from
// config.json and generation_config.json. Pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "src/base/json_value.h"

namespace trireme {

// Returns the fields bos_token_id, eos_token_id and pad_token_id of a config.json. A field that is
// null is left out; one that is missing has the id of the model's class in transformers, if the
// vocabulary has such a token. Throws DataError.
JsonValue config_special_ids(const nlohmann::json& config, std::string_view model_type,
                             std::int64_t vocab);

// Returns a list of the ids in eos_token_id of a generation_config.json, at which transformers ends
// a text instead of at those of config.json; an empty one if the file has none. Throws DataError.
JsonValue parse_generation_ends(std::string_view text, std::int64_t vocab);

}  // namespace trireme
