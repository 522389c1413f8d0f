// Reads and writes the options in which config.json of a Jais differs from that of a GPT-2: ALiBi's
// bias, SwiGLU, and the factors of maximal update parametrization, under the names of Jais's
// published configuration class and under older ones. Pure functions.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "src/interchange/config_fields.h"
#include "src/nn/model_config.h"

namespace trireme {

inline constexpr const char* kJaisArchitecture = "JAISLMHeadModel";
// The tensor with ALiBi's slopes, [heads, 1], which Jais stores although they follow from the
// number of heads.
inline constexpr const char* kJaisSlopes = "transformer.relative_pe.slopes";

// Returns whether GPT-2's own class computes a model of the family.
bool is_plain_gpt2(const ModelConfig& model);

// model: as read from the options that GPT-2 has, too. Throws DataError that names the option if
// this program does not compute what it asks for.
void read_jais_options(ConfigFields& fields, ModelConfig& model);

// Changes the fields of a GPT-2 to those of this model.
void put_jais_options(const ModelConfig& model, nlohmann::json& fields);

// Throws ConfigError if no config.json can describe the model.
void check_hf_scales(const ModelConfig& model);

// Returns the slopes that Jais stores: [heads].
std::vector<float> jais_slopes(const ModelConfig& model);

}  // namespace trireme
