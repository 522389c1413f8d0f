// Fingerprints: what a checkpoint remembers of the run that wrote it, as JSON objects of fields, so
// that a difference at resume can be told field by field.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/train/run/run_config.h"

namespace trireme {

// What decides which weights come out: model, data, batch, optimizer. A resumed run must agree in
// all of it, but for fields that checkpoint.allow_change names.
nlohmann::json config_fingerprint(const RunConfig& config, const std::string& dataset_digest,
                                  const std::string& tokenizer);

// Fields of two config fingerprints that may differ, for they decide nothing: what their kind of
// schedule does not use, and what the checkpoint's version did not write.
std::vector<std::string> fields_without_effect(const nlohmann::json& checkpoint,
                                               const nlohmann::json& run);

// A config fingerprint out of a checkpoint, with the fields that versions before this one did not
// write at the values that they trained with.
nlohmann::json with_later_fields(const nlohmann::json& fingerprint);

// Fields of a numerics fingerprint that the checkpoint's version did not write.
std::vector<std::string> fields_not_recorded(const nlohmann::json& checkpoint_numerics);

// ConfigError if the checkpoint lacks state of the run's optimizer: another optimizer's, or no
// average of the weights. No checkpoint.allow_change can make up for that.
void check_same_states(const nlohmann::json& checkpoint, const RunConfig& run);

// The fields for people: numbers that were floats in their shortest form, 0.0003 instead of
// 0.0003000000142492354.
nlohmann::json readable_numbers(nlohmann::json fields);

// What decides the bits of the same computation: kernels and their instructions, promise, layout.
nlohmann::json numerics_fingerprint(const RunConfig& config, std::string_view kernels, int dp,
                                    int tp, bool sequence_parallel);

// The model's part of a config fingerprint, read back: how `generate` and `eval` know what to
// build. DataError if it is none.
ModelConfig model_from_fingerprint(const nlohmann::json& fingerprint);

}  // namespace trireme
