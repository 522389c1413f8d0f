// ResumeCheck checks that a checkpoint matches the run before the run resumes from it, and warns of
// differences that are allowed. It is owned by TrainingCheckpoints; everything it refers to must
// outlive it.
#pragma once

#include "src/base/error.h"
#include "src/base/json_value.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/run_config.h"
#include "src/train/saving/save_report.h"

namespace trireme {

struct RunFingerprints {
  JsonValue config;
  JsonValue numerics;
  JsonValue extra;  // for readers of the checkpoint: tokenizer, software
};

// Throws ConfigError if one of the fields that checkpoint.allow_change names is none of `fields`: a
// misspelt field would silently allow nothing.
void check_allowed_fields(const std::vector<std::string>& allowed, const nlohmann::json& fields);

// Throws ConfigError that names each differing field if a run with the fingerprint `own` may not
// resume from the checkpoint.
void check_same_run(const Manifest& manifest, const RunConfig& config, const nlohmann::json& own);

// Throws ConfigError if a checkpoint of adapters has another base than a run with the part `extra`
// of its manifests, and DataError if the checkpoint's fields contradict one another.
void check_same_weights(const Manifest& manifest, const RunConfig& config,
                        const nlohmann::json& own_extra);

// Returns the error for a checkpoint that exists although checkpoint.resume is never.
ConfigError resume_is_never(const std::filesystem::path& folder, std::int64_t step);

class ResumeCheck {
 public:
  ResumeCheck(const RunConfig& config, const RunFingerprints& own, const SaveReport& report)
      : config_(config), own_(own), report_(report) {}

  // Throws ConfigError that names each differing field if the checkpoint belongs to another run or
  // was trained with other batches, and DataError if its fields contradict one another.
  void accept(const Manifest& manifest) const;
  // Returns whether the checkpoint's configuration describes the run's own model.
  bool is_same_model(const Manifest& manifest) const;
  // Returns the counters to continue with. Throws as accept() does.
  TrainingCounters counters(const CheckpointMeta& saved) const;

 private:
  TrainingCounters place_of(const CheckpointMeta& saved) const;
  void warn_of_other_numerics(const Manifest& manifest) const;
  void warn_of_other_samples(const CheckpointMeta& saved) const;

  const RunConfig& config_;
  const RunFingerprints& own_;
  const SaveReport& report_;
};

}  // namespace trireme
