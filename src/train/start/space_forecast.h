// SpaceForecast estimates, before the first save, whether the checkpoints of a run will fit where
// they go. A full disk damages nothing, but it may cost a week of work that can't be saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/train/run/run_config.h"

namespace trireme {

struct SpaceForecast {
  std::int64_t checkpoint_bytes = 0;  // size of one step: fp32 weights and the optimizer's state
  std::int64_t newest = 0;        // number present at once: those kept and the one being written
  std::int64_t milestones = 0;    // number that checkpoint.keep_every keeps, at the end of the run
  std::int64_t best = 0;          // number that checkpoint.keep_best keeps in addition
  std::int64_t stored_bytes = 0;  // size of those already present, except pinned ones
  // Space that is available; nothing if that is unknown or unlimited.
  std::optional<std::int64_t> free_bytes;
  std::optional<std::int64_t> quota_bytes;  // what is left of the user's or the group's quota

  std::int64_t checkpoints() const { return newest + milestones + best; }
  // Returns how much space is needed in addition to what is stored now.
  std::int64_t needed_bytes() const;
  // Returns "" if there is enough space, else what is missing, with the numbers, and what to do.
  std::string lack(const std::string& folder) const;
};

// Estimates number and size of the checkpoints that the configuration keeps. A pure function.
SpaceForecast forecast_space(const RunConfig& config);
// Also determines what checkpoint.dir holds and how much fits there, as far as that can be found
// out. Never throws an Error.
SpaceForecast measured_space(const RunConfig& config);

}  // namespace trireme
