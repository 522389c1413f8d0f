#include "src/plan/layer_cost.h"

#include <algorithm>

namespace trireme {
namespace {

std::int64_t share(std::int64_t whole, std::int64_t ranks) { return (whole + ranks - 1) / ranks; }

std::int64_t tokens_of(const PlanWork& work, const PlanLayout& layout) {
  return layout.micro_batch * work.model.sequence;
}

// The products of backward: the gradient of the input [M,N] x [N,K], and that of the weight,
// [N,M] x [M,K].
double backward_seconds(const PlanWork& work, const PlannedProduct& s) {
  return product_seconds(work.cluster, work.precision, {s.m, s.k, s.n, s.count}) +
         product_seconds(work.cluster, work.precision, {s.n, s.k, s.m, s.count});
}

struct AttentionTimes {
  double forward = 0;
  double backward = 0;
};

// Fused attention computes the lower half of the scores: 2 products of S x S/2 x D per head forward
// and 5 backward (Dao, "FlashAttention-2", 2023, section 3.1).
AttentionTimes fused_attention(const PlanWork& work, const PlanLayout& layout) {
  const PlanModel& m = work.model;
  const double heads = real(share(m.heads, layout.tp)) * real(layout.micro_batch);
  const double half = real(m.sequence) * real(m.sequence) / 2;
  const double product = 2 * half * real(m.head_dim) * heads;
  const PlanPrecision precision =
      work.precision == PlanPrecision::fp8 ? PlanPrecision::bf16 : work.precision;
  const double rate = peak_flops(work.cluster, precision) * work.cluster.efficiency.attention *
                      work.software.attention_share;
  constexpr double kBackwardShare = 0.8;  // of forward's rate (the same, figures 5 and 6)
  const double least = work.cluster.device.launch_us * 1e-6;
  return {std::max(least, 2 * product / rate),
          std::max(least, 5 * product / (rate * kBackwardShare))};
}

// Scores, probabilities and their dropout masks are written and read: 9 bytes per score forward, 11
// backward (Megatron-LM's fused softmax, then dropout).
AttentionTimes materialized_attention(const PlanWork& work, const PlanLayout& layout) {
  const PlanModel& m = work.model;
  const std::int64_t heads = share(m.heads, layout.tp) * layout.micro_batch;
  const PlannedProduct scores{m.sequence, m.sequence, m.head_dim, heads};
  const PlannedProduct sums{m.sequence, m.head_dim, m.sequence, heads};
  const auto product = [&](const PlannedProduct& s) {
    return product_seconds(work.cluster, work.precision, s);
  };
  const auto moved = [&](double bytes) {
    return kernel_seconds(work.cluster, bytes * real(heads) * real(m.sequence) * real(m.sequence));
  };
  const double products = product(scores) + product(sums);
  return {products + moved(4) + moved(5), 2 * products + moved(6) + moved(5)};
}

AttentionTimes attention_times(const PlanWork& work, const PlanLayout& layout) {
  return work.software.materializes_attention ? materialized_attention(work, layout)
                                              : fused_attention(work, layout);
}

// Kernels that only move data, in bytes per element of 2 bytes: a norm reads and writes (4), a
// residual reads two and writes one (6, with a dropout mask 7), an activation reads and writes its
// elements (gated: 6 bytes per output), positions and heads are arranged (4 per element of qkv).
PassCost kernel_times(const PlanWork& work, const PlanLayout& layout, bool backward) {
  const PlanModel& m = work.model;
  const double tokens = real(tokens_of(work, layout));
  const double stream =
      tokens * real(m.hidden) / (layout.sequence_parallel ? real(layout.tp) : 1.0);
  const double inner = tokens * real(m.ffn) / real(layout.tp);
  const double qkv = tokens * real(m.qkv_width()) / real(layout.tp);
  const double wide = element_bytes(work.precision) / 2;
  const auto moved = [&](double bytes) {
    return kernel_seconds(work.cluster, wide * bytes * work.software.kernel_traffic);
  };
  PassCost cost;
  if (backward) {
    const double activation = m.gated ? 10 : 6;
    cost.kernels = 2 * moved(8 * stream) + moved(activation * inner) + moved(6 * qkv) +
                   (m.dropout ? 2 * moved(5 * stream) + 2 * moved(4 * qkv) : 0);
  } else {
    const double activation = m.gated ? 6 : 4;
    cost.kernels = 2 * moved(4 * stream) + 2 * moved((m.dropout ? 7 : 6) * stream) +
                   moved(activation * inner) + (m.dropout ? 2 : 1) * moved(4 * qkv);
  }
  return cost;
}

// Each pass of a block adds up two activations of T x H over the tp ranks (Shoeybi et al., 2019);
// with sequence parallelism, as a reduce-scatter and an all-gather of the same bytes (Korthikanti
// et al., 2022).
double tensor_seconds(const PlanWork& work, const PlanLayout& layout) {
  const double bytes =
      element_bytes(work.precision) * real(tokens_of(work, layout)) * real(work.model.hidden);
  const double whole = 2 * ring_seconds(work.cluster, tensor_group(work.cluster, layout), bytes, 2);
  return work.cluster.calibration.tensor * whole *
         (work.software.overlaps_tensor ? 1 - work.cluster.efficiency.overlap : 1);
}

void scale(const Cluster::Calibration& factors, PassCost& cost) {
  cost.products *= factors.products;
  cost.attention *= factors.attention;
  cost.kernels *= factors.kernels;
}

PassCost repeated_cost(const PlanLayout& layout, const PassCost& forward) {
  switch (layout.recompute) {
    case PlanRecompute::none:
      return {};
    case PlanRecompute::selective:
      return {.attention = forward.attention, .kernels = forward.kernels};
    case PlanRecompute::full:
      return forward;
  }
  return {};
}

}  // namespace

RingGroup tensor_group(const Cluster& cluster, const PlanLayout& layout) {
  return {layout.tp, std::min<std::int64_t>(layout.tp, cluster.device.per_node)};
}

RingGroup replica_group(const Cluster& cluster, const PlanLayout& layout) {
  const std::int64_t left =
      std::max<std::int64_t>(1, cluster.device.per_node / std::max<std::int64_t>(1, layout.tp));
  return {layout.dp, std::min(layout.dp, left)};
}

std::vector<ProductCost> block_products(const PlanWork& work, const PlanLayout& layout) {
  const PlanModel& m = work.model;
  const std::int64_t tokens = tokens_of(work, layout);
  const std::int64_t t = layout.tp;
  std::vector<ProductCost> products = {
      {"queries, keys, values", {tokens, share(m.qkv_width(), t), m.hidden}},
      {"output of attention", {tokens, m.hidden, share(m.heads * m.head_dim, t)}},
      {"MLP in", {tokens, (m.gated ? 2 : 1) * share(m.ffn, t), m.hidden}},
      {"MLP out", {tokens, m.hidden, share(m.ffn, t)}}};
  for (ProductCost& product : products) {
    product.forward = product_seconds(work.cluster, work.precision, product.shape);
    product.backward = backward_seconds(work, product.shape);
  }
  return products;
}

BlockCost block_cost(const PlanWork& work, const PlanLayout& layout) {
  BlockCost cost;
  cost.forward = kernel_times(work, layout, false);
  cost.backward = kernel_times(work, layout, true);
  for (const ProductCost& product : block_products(work, layout)) {
    cost.forward.products += product.forward;
    cost.backward.products += product.backward;
  }
  const AttentionTimes attention = attention_times(work, layout);
  cost.forward.attention = attention.forward;
  cost.backward.attention = attention.backward;
  scale(work.cluster.calibration, cost.forward);
  scale(work.cluster.calibration, cost.backward);
  cost.forward.tensor = cost.backward.tensor = tensor_seconds(work, layout);
  cost.repeated = repeated_cost(layout, cost.forward);
  return cost;
}

HeadCost head_cost(const PlanWork& work, const PlanLayout& layout) {
  const PlanModel& m = work.model;
  // Libraries pad the vocabulary to a multiple of 128 per rank.
  constexpr std::int64_t kVocabularyUnit = 128;
  const std::int64_t vocab = share(m.vocab, kVocabularyUnit * layout.tp) * kVocabularyUnit;
  const double tokens = real(tokens_of(work, layout));
  const double logits = tokens * real(vocab);
  const PlannedProduct shape{tokens_of(work, layout), vocab, m.hidden};
  const PlanPrecision precision =
      work.precision == PlanPrecision::fp8 ? PlanPrecision::bf16 : work.precision;
  const PlanWork in_bf16{m, work.cluster, work.software, precision};
  HeadCost cost;
  const double factor = work.cluster.calibration.head;
  const auto moved = [&](double bytes) { return factor * kernel_seconds(work.cluster, bytes); };
  cost.forward.products = factor * product_seconds(work.cluster, precision, shape);
  cost.backward.products = factor * backward_seconds(in_bf16, shape);
  // The loss reads logits twice in fp32 and writes them; backward writes their gradient.
  cost.forward.kernels = moved(14 * logits);
  cost.backward.kernels = moved(8 * logits);
  cost.embedding_forward = moved(10 * tokens * real(m.hidden));
  cost.embedding_backward = moved(18 * tokens * real(m.hidden));
  return cost;
}

double teacher_seconds(const PlanWork& work, const PlanLayout& layout) {
  if (work.teacher == nullptr) {
    return 0;
  }
  const PlanWork frozen{*work.teacher, work.cluster, work.software, work.precision};
  PlanLayout whole;
  whole.micro_batch = layout.micro_batch;
  const HeadCost head = head_cost(frozen, whole);
  return real(work.teacher->layers) * block_cost(frozen, whole).forward.total() +
         head.forward.total() + head.embedding_forward;
}

}  // namespace trireme
