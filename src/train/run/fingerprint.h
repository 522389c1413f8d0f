// A fingerprint is what a checkpoint remembers of the run that wrote it: a JSON object of fields,
// so that differences at resume can be reported field by field. Pure functions.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/train/run/run_config.h"

namespace trireme {

// Returns the fields that determine the weights: model, data, batch, optimizer. A resumed run must
// agree in all of them, except for those that checkpoint.allow_change names.
nlohmann::json config_fingerprint(const RunConfig& config, const std::string& dataset_digest,
                                  const std::string& tokenizer);

// Returns the fields of two config fingerprints that may differ because they have no effect: those
// that the schedule's kind does not use, and those that an older version did not write.
std::vector<std::string> fields_without_effect(const nlohmann::json& checkpoint,
                                               const nlohmann::json& run);

// Adds the fields that older versions did not write to a config fingerprint from a checkpoint, with
// the values with which those versions trained.
nlohmann::json with_later_fields(const nlohmann::json& fingerprint);

// Returns the fields "algorithms.PRODUCT" of two numerics fingerprints for products that only one
// of the runs computes, as with another number of pipeline stages or another micro-batch.
std::vector<std::string> algorithms_of_one_run(const nlohmann::json& checkpoint,
                                               const nlohmann::json& run);

// Returns the fields of a numerics fingerprint that an older version did not write.
std::vector<std::string> fields_not_recorded(const nlohmann::json& checkpoint_numerics);

// Returns whether a config fingerprint is of a run that keeps a moving average of its weights.
// Throws DataError if the field is not a number.
bool has_average(const nlohmann::json& checkpoint);

// Returns whether a config fingerprint is of a run that kept the documents of a sample apart
// (data.documents). Throws DataError if the field has no known value.
bool separates_documents(const nlohmann::json& checkpoint);

// Returns the precision that a config fingerprint was trained in (train.precision), or bf16 if it
// states none because another program wrote it. Throws DataError if the field has no known value.
DType trained_precision(const nlohmann::json& checkpoint);

// Throws ConfigError if the checkpoint lacks state of the run's optimizer: it is from another
// optimizer, or has no average of the weights. checkpoint.allow_change can't accept that.
void check_same_states(const nlohmann::json& checkpoint, const RunConfig& run);

// Returns the key of the configuration that sets a field of a config fingerprint. Some fields have
// kept names that the configuration has not.
std::string configuration_key(const std::string& field);
// Returns the fields by their keys in the configuration, for people.
nlohmann::json by_configuration_keys(const nlohmann::json& fields);

// Returns the fields in readable form: numbers that were floats become as short as possible, 0.0003
// instead of 0.0003000000142492354.
nlohmann::json readable_numbers(nlohmann::json fields);

// Returns the fields that determine the bits of the same computation: kernels and their
// instructions, reproducibility, layout, and NCCL where its order of sums counts.
nlohmann::json numerics_fingerprint(const RunConfig& config, std::string_view kernels, int dp,
                                    int tp, bool sequence_parallel);

}  // namespace trireme
