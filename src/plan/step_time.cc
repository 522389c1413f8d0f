#include "src/plan/step_time.h"

#include <algorithm>
#include <numeric>

#include "src/plan/pipeline_cost.h"
#include "src/plan/step_parts.h"

namespace trireme {
namespace {

// AdamW reads gradient, master weight and moments and writes the latter three and a working copy
// (30 bytes); the norm reads the gradient once more, and it is set to zero.
constexpr double kOptimizerBytes = 38;

StagePass stage_pass(const StepParts& p) {
  const PassCost& f = p.block.forward;
  return {
      .forward = p.layers * f.total() + p.transfer / 2,
      .backward = p.layers * (p.block.backward.total() + p.block.repeated.total()) + p.transfer / 2,
      .head_forward = p.head.forward.total(),
      .head_backward = p.head.backward.total(),
      .embedding_forward = p.head.embedding_forward,
      .embedding_backward = p.head.embedding_backward,
      .teacher = p.teacher};
}

// Returns what a stage waits per micro-batch for messages: one forward and one backward for each of
// its chunks.
double transfer_seconds(const PlanWork& work, const PlanLayout& layout) {
  if (layout.pp == 1) {
    return 0;
  }
  const double bytes = element_bytes(work.precision) *
                       real(layout.micro_batch * work.model.sequence) * real(work.model.hidden);
  const bool within_node = layout.ranks() <= work.cluster.device.per_node;
  const bool divided = work.software.scatters_transfers || layout.sequence_parallel;
  double one =
      message_seconds(work.cluster, within_node, divided ? bytes / real(layout.tp) : bytes);
  if (work.software.scatters_transfers && !layout.sequence_parallel) {
    one += ring_seconds(work.cluster, tensor_group(work.cluster, layout), bytes, 1);
  }
  const double exposed = work.software.overlaps_transfers ? 1 - work.cluster.efficiency.overlap : 1;
  return work.cluster.calibration.pipeline * 2 * real(layout.virtual_stages) * one * exposed;
}

// Returns what is left of a transfer if the part `overlap` of it can hide behind `window`.
double exposed(double seconds, double window, double overlap) {
  return seconds - overlap * std::min(seconds, window);
}

void add_replica_terms(const PlanWork& work, const PlanLayout& layout, StepParts& p) {
  const RingGroup group = replica_group(work.cluster, layout);
  const double overlap = work.software.overlaps_gradients ? work.cluster.efficiency.overlap : 0.0;
  const double m = real(layout.micro_batches);
  const double rounds = layout.zero >= 2 ? m : 1;  // of reductions per step
  const double once = work.software.gradient_bytes * p.parameters;
  p.gradient_bytes = once * rounds;
  p.gradient_whole = rounds * ring_seconds(work.cluster, group, once, layout.zero == 0 ? 2 : 1);
  const double backward = p.layers * p.block.backward.total();
  p.time.gradients = exposed(p.gradient_whole, rounds * backward, overlap);
  if (work.model.tied && layout.pp > 1) {
    const RingGroup ends{2, layout.ranks() <= work.cluster.device.per_node ? 2 : 1};
    const double shared =
        work.software.gradient_bytes * work.model.embedding_parameters() / real(layout.tp);
    p.time.gradients += ring_seconds(work.cluster, ends, shared, 2);
  }
  if (layout.zero == 0) {
    return;
  }
  // Working copies: once per step, with ZeRO 3 twice per micro-batch.
  const double gathers = layout.zero == 3 ? 2 * m : 1;
  const double copies = element_bytes(work.precision) * p.parameters;
  p.parameter_bytes = gathers * copies;
  p.parameter_whole = gathers * ring_seconds(work.cluster, group, copies, 1);
  const double forward = p.layers * p.block.forward.total();
  p.time.parameters =
      exposed(p.parameter_whole, layout.zero == 3 ? m * (forward + backward) : forward, overlap);
}

void add_block_terms(const PlanLayout& layout, bool balanced, StepParts& p) {
  const double m = real(layout.micro_batches);
  const PassCost& f = p.block.forward;
  const PassCost& b = p.block.backward;
  p.time.products = m * p.layers * (f.products + b.products);
  p.time.attention = m * p.layers * (f.attention + b.attention);
  p.time.kernels = m * p.layers * (f.kernels + b.kernels);
  p.time.tensor = m * p.layers * (f.tensor + b.tensor);
  p.time.recompute = m * p.layers * p.block.repeated.total();
  p.time.transfer = m * p.transfer;
  const double head = p.head.forward.total() + p.head.backward.total();
  const double embedding = p.head.embedding_forward + p.head.embedding_backward;
  p.time.head = layout.pp == 1 ? m * (head + embedding + p.teacher)
                : balanced     ? m * ((head + embedding) / real(layout.pp) + p.teacher)
                               : m * std::max(head + p.teacher, embedding);
}

}  // namespace

StepParts step_parts(const PlanWork& work, const PlanLayout& layout, BubbleMethod method,
                     const CheckpointStall& stall) {
  StepParts p;
  p.layers = real(work.model.layers) / real(layout.pp);
  p.block = block_cost(work, layout);
  p.head = head_cost(work, layout);
  p.teacher = teacher_seconds(work, layout);
  p.transfer = transfer_seconds(work, layout);
  p.parameters = rank_parameters(work.model, layout);
  const bool balanced = work.software.balances_stages;
  add_block_terms(layout, balanced, p);
  p.pass = stage_pass(p);
  p.pipeline = pipeline_time(layout, p.pass, balanced, method);
  const Cluster::Calibration& factors = work.cluster.calibration;
  p.time.bubble = factors.pipeline * (p.pipeline.total - p.pipeline.busy);
  add_replica_terms(work, layout, p);
  p.time.gradients *= factors.replicas;
  p.time.parameters *= factors.replicas;
  const double held = p.parameters / (layout.zero >= 1 ? real(layout.dp) : 1.0);
  p.time.optimizer = factors.optimizer * kernel_seconds(work.cluster, kOptimizerBytes * held);
  if (layout.micro_batches > 1) {
    p.accumulated = layout.zero == 3 ? held : p.parameters;
    p.time.accumulate =
        factors.kernels * real(layout.micro_batches) *
        kernel_seconds(work.cluster, work.software.accumulate_bytes * p.accumulated);
  }
  p.time.checkpoint = stall.every_steps > 0 ? stall.seconds / stall.every_steps : 0;
  return p;
}

std::array<double, StepTime::kTerms> StepTime::terms() const {
  return {products, head,   attention, kernels,    recompute, tensor,    accumulate,
          transfer, bubble, gradients, parameters, optimizer, checkpoint};
}

const std::array<const char*, StepTime::kTerms>& StepTime::names() {
  static constexpr std::array<const char*, kTerms> kNames = {
      "products", "head",   "attention", "kernels",    "recompute", "tensor",    "accumulate",
      "transfer", "bubble", "gradients", "parameters", "optimizer", "checkpoint"};
  return kNames;
}

double StepTime::total() const {
  const auto all = terms();
  return std::accumulate(all.begin(), all.end(), 0.0);
}

double rank_parameters(const PlanModel& model, const PlanLayout& layout) {
  const double blocks = real(model.layers) / real(layout.pp) * model.block_parameters();
  const double embeddings = (layout.pp == 1 && !model.tied ? 2 : 1) * model.embedding_parameters();
  return (blocks + embeddings) / real(layout.tp);
}

StepTime step_time(const PlanWork& work, const PlanLayout& layout, BubbleMethod method,
                   const CheckpointStall& stall) {
  return step_parts(work, layout, method, stall).time;
}

}  // namespace trireme
