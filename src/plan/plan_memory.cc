#include "src/plan/plan_memory.h"

#include <algorithm>

#include "src/parallel/gradient_rounds.h"
#include "src/plan/step_time.h"

namespace trireme {
namespace {

// Returns the bytes that a block keeps of one micro-batch (Korthikanti et al., 2022, section 4; the
// numbers for fused attention and for selective recomputation are those of docs/parallelism.md).
double block_activations(const PlanWork& work, const PlanLayout& layout) {
  const PlanModel& m = work.model;
  const double tokens = real(layout.micro_batch * m.sequence);
  const double t = real(layout.tp);
  const double element = element_bytes(work.precision);
  const double stream = tokens * real(m.hidden) / (layout.sequence_parallel ? t : 1.0);
  if (layout.recompute == PlanRecompute::full) {
    return element * stream;
  }
  const double qkv = tokens * real(m.qkv_width()) / t;
  const double heads = tokens * real(m.heads * m.head_dim) / t;
  const double inner = tokens * real(m.ffn) / t;
  if (layout.recompute == PlanRecompute::selective) {
    return element * (2 * stream + qkv + (m.gated ? 2 : 1) * inner);
  }
  double elements = 4 * stream + qkv + heads + (m.gated ? 3 : 2) * inner;
  if (m.dropout) {
    elements += stream;  // two masks of a byte
  }
  if (work.software.materializes_attention) {
    elements += 2.5 * real(m.heads) / t * tokens * real(m.sequence);
  }
  return element * elements;
}

// Returns how many micro-batches of all of a stage's blocks are kept at the same time on the first
// stage: 1F1B holds as many as there are stages; the interleaved schedule (p-1)/(p v) more.
double in_flight(const PlanLayout& layout) {
  const double m = real(layout.micro_batches);
  const double p = real(layout.pp);
  if (layout.schedule == PipelineSchedule::gpipe) {
    return layout.pp > 1 ? m : 1;
  }
  const double most = layout.virtual_stages > 1 ? p + (p - 1) / real(layout.virtual_stages) : p;
  return std::min(m, most);
}

// Returns what is needed while one block runs backward: its whole activations again, and gradients.
double workspace(const PlanWork& work, const PlanLayout& layout) {
  PlanLayout kept = layout;
  kept.recompute = PlanRecompute::none;
  return 2 * block_activations(work, kept);
}

// Logits in the working type, in fp32 and their gradient.
double logits_bytes(const PlanWork& work, const PlanLayout& layout) {
  const double tokens = real(layout.micro_batch * work.model.sequence);
  return 10 * tokens * real(work.model.vocab) / real(layout.tp);
}

// The sums of gradients that a rank keeps, as src/parallel/gradient_reducer.cc counts them. n: of
// the rank's parameters; block: of those of a block.
double gradient_bytes(const PlanWork& work, const PlanLayout& layout, double n, double block) {
  const auto how = work.software.sums_in_tree ? Reproducibility::elastic : Reproducibility::layout;
  const GradientRounds rounds = gradient_rounds(layout.dp * layout.micro_batches,
                                                static_cast<int>(layout.dp), layout.zero, how);
  const double whole = 4 * n * real(sums_kept(rounds.each, how));
  if (layout.zero < 2) {
    return whole + (work.software.sums_in_tree && rounds.each > 1 ? 4 * block : 0);
  }
  const double shards = 4 * n / real(layout.dp) * real(sums_kept(rounds.rounds, how));
  return (rounds.each > 1 ? whole : 0) + (rounds.rounds > 1 || rounds.each == 1 ? shards : 0);
}

}  // namespace

PlannedMemory rank_memory(const PlanWork& work, const PlanLayout& layout) {
  const double n = rank_parameters(work.model, layout);
  const double d = real(layout.dp);
  const bool fp32 = work.precision == PlanPrecision::fp32;
  PlannedMemory memory;
  const double copies = (fp32 ? 4 : 2) * n;
  const double masters = fp32 ? 0 : 4 * n;
  memory.parameters =
      (layout.zero == 3 ? copies / d : copies) + (layout.zero >= 1 ? masters / d : masters);
  const double block = work.model.block_parameters() / real(layout.tp);
  memory.gradients = gradient_bytes(work, layout, n, block);
  memory.optimizer = (layout.zero >= 1 ? 8 * n / d : 8 * n);
  const double blocks = real(work.model.layers) / real(layout.pp);
  const double kept = blocks * block_activations(work, layout);
  const double first = kept * in_flight(layout) + workspace(work, layout);
  const double last = kept + workspace(work, layout) + logits_bytes(work, layout);
  memory.activations = layout.pp == 1
                           ? kept + std::max(workspace(work, layout), logits_bytes(work, layout))
                           : std::max(first, last);
  memory.communication = layout.zero == 3 ? 2 * 2 * block : layout.zero == 2 ? 4 * block : 0;
  // A save copies master weights and moments before it writes them.
  memory.snapshot = work.cluster.device.kind == "cpu" ? 12 * n / d : 0;
  memory.reserved = real(work.cluster.device.reserved_memory);
  return memory;
}

}  // namespace trireme
