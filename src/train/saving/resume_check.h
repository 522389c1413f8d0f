// ResumeCheck: what a checkpoint must agree in before a run resumes from it, and the warnings about
// what differs. Everything that it refers to outlives it.
#pragma once

#include "src/base/json_value.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/run_config.h"
#include "src/train/saving/save_report.h"

namespace trireme {

struct RunFingerprints {
  JsonValue config;
  JsonValue numerics;
  JsonValue extra;  // what readers of the checkpoint want to know: tokenizer, software
};

class ResumeCheck {
 public:
  ResumeCheck(const RunConfig& config, const RunFingerprints& own, const SaveReport& report)
      : config_(config), own_(own), report_(report) {}

  // ConfigError if the checkpoint belongs to another run: names each field that differs.
  void accept(const Manifest& manifest) const;
  // The counters to go on with. DataError if they are damaged; ConfigError if the run's batches are
  // not those that the checkpoint has seen.
  TrainingCounters counters(const CheckpointMeta& saved) const;

 private:
  void warn_of_other_numerics(const Manifest& manifest) const;
  void warn_of_other_samples(const CheckpointMeta& saved) const;

  const RunConfig& config_;
  const RunFingerprints& own_;
  const SaveReport& report_;
};

}  // namespace trireme
