// PlanLayout is a way to divide a run among ranks, with what else decides its time and memory.
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "src/parallel/pipeline/schedule.h"

namespace trireme {

enum class PlanRecompute : std::uint8_t { none, selective, full };

struct PlanLayout {
  std::int64_t dp = 1;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t virtual_stages = 1;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int64_t micro_batch = 1;    // sequences
  std::int64_t micro_batches = 1;  // per replica and step
  int zero = 0;
  PlanRecompute recompute = PlanRecompute::none;
  bool sequence_parallel = false;

  std::int64_t ranks() const { return dp * tp * pp; }
  std::int64_t global_batch() const { return dp * micro_batch * micro_batches; }
  friend bool operator==(const PlanLayout&, const PlanLayout&) = default;
};

// Returns "dp 8 tp 4 pp 2 v 2 micro-batch 1 zero 1 recompute full".
std::string layout_text(const PlanLayout& layout);

// Returns "none", "selective" or "full".
std::string_view name_of(PlanRecompute recompute);

// Parses what --why-not takes, such as "dp=8,tp=4,pp=2": keys dp, tp, pp, v, micro_batch, zero,
// recompute and schedule; those that are not given stay as in `base`. global_batch: sequences, from
// which the micro-batches follow. Throws ConfigError for anything else.
PlanLayout parse_layout(std::string_view text, const PlanLayout& base, std::int64_t global_batch);

}  // namespace trireme
