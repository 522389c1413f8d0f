// SpaceForecast: whether the checkpoints of a run will find room where they go, before the first is
// written. A full disk is no damage, but what it keeps from being saved may be a week of work.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/train/run/run_config.h"

namespace trireme {

struct SpaceForecast {
  std::int64_t checkpoint_bytes = 0;  // of one step: fp32 weights and the optimizer's state
  std::int64_t newest = 0;            // that stand at once: those kept and the one being written
  std::int64_t milestones = 0;        // that checkpoint.keep_every keeps for good, by the end
  std::int64_t best = 0;              // that checkpoint.keep_best keeps beside those
  std::int64_t stored_bytes = 0;      // of those that are there already
  // What there is to be had; nothing: unknown, or without a limit.
  std::optional<std::int64_t> free_bytes;
  std::optional<std::int64_t> quota_bytes;  // of the user's or the group's quota, what is left

  std::int64_t checkpoints() const { return newest + milestones + best; }
  // More than is stored now.
  std::int64_t needed_bytes() const;
  // Empty if there is room for all; else what lacks, with the figures, and what to do.
  std::string lack(const std::string& folder) const;
};

// How many checkpoints the configuration leaves, and of what size. A pure function.
SpaceForecast forecast_space(const RunConfig& config);
// The same, with what checkpoint.dir holds and has room for; what can't be found out stays open.
SpaceForecast measured_space(const RunConfig& config);

}  // namespace trireme
