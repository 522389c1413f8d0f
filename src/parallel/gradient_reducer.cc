#include "src/parallel/gradient_reducer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "src/parallel/reduction_tree.h"

namespace trireme {
namespace {

// Selects about half of the elements, spread over the buckets. If every micro-batch merges once,
// which is so unless sums are elastic, there is nothing to even out.
std::vector<bool> buckets_merging_late(const ZeroLayout& layout, Reproducibility how) {
  std::vector<bool> late(static_cast<std::size_t>(layout.buckets()), false);
  std::int64_t surplus = 0;  // elements that merge immediately minus those that merge late
  for (int b = 0; b < layout.buckets(); ++b) {
    const bool is_late = how == Reproducibility::elastic && surplus > 0;
    late[static_cast<std::size_t>(b)] = is_late;
    surplus += is_late ? -layout.padded(b) : layout.padded(b);
  }
  return late;
}

}  // namespace

GradientReducer::GradientReducer(const ZeroLayout& layout, const ZeroTools& tools,
                                 Reproducibility reproducibility)
    : layout_(layout),
      tools_(tools),
      reproducibility_(reproducibility),
      memory_(layout, tools),
      partials_(static_cast<std::size_t>(layout.buckets())),
      merges_late_(buckets_merging_late(layout, reproducibility)) {
  check(tools.dp.size() == layout.ranks() && tools.dp.rank() == layout.rank(),
        "a layout is that of its group");
}

// If an error passes through, the reductions in flight are abandoned, and their buffers are freed.
GradientReducer::~GradientReducer() {
  for (Reduction& reduction : in_flight_) {
    reduction.pending.abandon();
  }
}

void GradientReducer::begin_step(std::int64_t micro_batches) {
  check(in_flight_.empty(), "a step ends before the next begins");
  const Kind kind_reduced = keeps_whole() ? Kind::whole : Kind::block;  // in the previous step
  rounds_ = gradient_rounds(micro_batches, layout_.ranks(), layout_.level(), reproducibility_);
  numbers_ = rounds_.numbers(layout_.rank(), layout_.ranks());
  for (Partial& partial : partials_) {
    give_back(partial.local, Kind::whole);
    give_back(partial.reduced, kind_reduced);
    partial.leaves = partial.rounds = 0;
    partial.due = 0;
  }
  leaves_.clear();
  timings_ = {};
  in_step_ = true;
}

GradientLeaf& GradientReducer::open(std::int64_t m) {
  const std::size_t next = leaves_.size();
  check(in_step_ && next < numbers_.size() && m == numbers_[next],
        "micro-batches are opened in their order, within a step");
  leaves_.push_back(
      std::make_unique<GradientLeaf>(layout_, memory_, [this](int bucket) { advance(bucket); }));
  return *leaves_.back();
}

// Adds the gradients that are complete, in the order of the micro-batches.
void GradientReducer::advance(int bucket) {
  Partial& sum = partial(bucket);
  while (sum.leaves < static_cast<std::int64_t>(leaves_.size())) {
    GradientLeaf& leaf = *leaves_[static_cast<std::size_t>(sum.leaves)];
    if (!leaf.complete(bucket)) {
      return;
    }
    add_leaf(bucket, leaf);
  }
}

// Values that are staged are added at once where they are added to anything: otherwise they would
// have to be copied first.
void GradientReducer::add_leaf(int bucket, GradientLeaf& leaf) {
  Partial& sum = partial(bucket);
  merge_top(sum.local, Kind::whole, std::exchange(sum.due, 0));
  const std::int64_t index = sum.leaves++ % rounds_.each;
  const bool is_last = index + 1 == rounds_.each;
  sum.due = merges(index, rounds_.each);
  if (const View staged = leaf.staged(bucket); !staged.empty() && sum.due > 0) {
    merge_top(sum.local, Kind::whole, std::exchange(sum.due, 0), staged);
    leaf.release_staged();
  } else {
    sum.local.push_back(leaf.take(bucket));
  }
  if (is_last || !merges_late_[static_cast<std::size_t>(bucket)]) {
    merge_top(sum.local, Kind::whole, std::exchange(sum.due, 0));
  }
  if (is_last) {
    start_reduction(bucket);
  }
}

// Returns how many sums on the stack are merged with number `index` of `count` summands.
int GradientReducer::merges(std::int64_t index, std::int64_t count) const {
  if (reproducibility_ == Reproducibility::elastic) {
    return merges_after(index, {0, count});
  }
  return index == 0 ? 0 : 1;
}

// Adds the topmost sum to the one below it, `merges` times, with up to kMaxAddends per kernel call.
// `above`, unless it is empty, is the topmost sum, and not on the stack.
void GradientReducer::merge_top(std::vector<Buffer>& stack, Kind kind, int merges,
                                ConstView above) {
  while (merges > 0) {
    const int n = std::min(merges, kMaxAddends);
    const auto sum = stack.end() - n - (above.empty() ? 1 : 0);
    std::array<ConstView, kMaxAddends> addends;
    const auto end = std::transform(sum + 1, stack.end(), addends.begin(),
                                    [](Buffer& buffer) { return buffer.view(DType::f32); });
    if (!above.empty()) {
      *end = std::exchange(above, {});
    }
    tools_.context.kernels().add_chain(tools_.context.stream(), sum->view(DType::f32),
                                       addends.data(), n);
    std::for_each(sum + 1, stack.end(), [&](Buffer& buffer) { memory_.give_back(buffer, kind); });
    stack.erase(sum + 1, stack.end());
    merges -= n;
  }
}

void GradientReducer::start_reduction(int bucket) {
  // On a device, the memory that a step takes must not depend on how far the host is ahead.
  const bool runs_at_once = tools_.context.stream().queue() == nullptr;
  while (runs_at_once && !in_flight_.empty() && in_flight_.front().pending.done()) {
    finish_oldest();
  }
  while (layout_.level() >= 2 && in_flight_.size() >= kInFlight) {
    finish_oldest();
  }
  Partial& sum = partial(bucket);
  Reduction reduction{bucket, std::move(sum.local.back()), {}};
  sum.local.pop_back();
  const View whole = reduction.buffer.view(DType::f32);
  reduction.pending =
      layout_.level() == 0
          ? tools_.dp.all_reduce(whole, ReduceOp::sum, &tools_.context.stream())
          : tools_.dp.reduce_scatter(whole, ReduceOp::sum, &tools_.context.stream());
  in_flight_.push_back(std::move(reduction));
}

void GradientReducer::finish_oldest() {
  Reduction& oldest = in_flight_.front();
  {
    const StreamTimer timer(tools_.context.stream(), timings_.exposed);
    const SpanTimer span(tools_.spans, SpanKind::replicas, "gradients");
    oldest.pending.wait(tools_.context.stream());
  }
  if (keeps_whole()) {
    partial(oldest.bucket).reduced.push_back(std::move(oldest.buffer));
  } else {
    add_round(oldest.bucket, oldest.buffer);
  }
  in_flight_.pop_front();
}

bool GradientReducer::keeps_whole() const { return trireme::keeps_whole(rounds_, layout_.level()); }

// Adds this rank's block of a reduced bucket to the sum over rounds, and frees the bucket.
void GradientReducer::add_round(int bucket, Buffer& whole) {
  Partial& sum = partial(bucket);
  const std::int64_t block = layout_.block(bucket);
  const View own = whole.view(DType::f32).slice(block * layout_.rank(), block);
  int merges_left = merges(sum.rounds++, rounds_.rounds);
  if (merges_left == 0) {
    sum.reduced.push_back(memory_.take_block(bucket));
    tools_.context.kernels().cast(tools_.context.stream(), sum.reduced.back().view(DType::f32),
                                  own);
  } else {
    tools_.context.kernels().add(tools_.context.stream(), sum.reduced.back().view(DType::f32), own);
  }
  memory_.give_back(whole, Kind::whole);
  merge_top(sum.reduced, Kind::block, merges_left - 1);
}

void GradientReducer::finish_step() {
  check(in_step_ && leaves_.size() == numbers_.size(),
        "a step ends after all of its micro-batches");
  for (const auto& leaf : leaves_) {
    leaf->check_complete();
  }
  while (!in_flight_.empty()) {
    finish_oldest();
  }
  in_step_ = false;
}

View GradientReducer::sum(int bucket) const {
  const Partial& partial = partials_[static_cast<std::size_t>(bucket)];
  check(!in_step_ && partial.reduced.size() == 1, "gradients are summed when a step is finished");
  const View reduced = partial.reduced.front().view(DType::f32);
  const std::int64_t own = keeps_whole() ? layout_.block(bucket) * layout_.rank() : 0;
  return layout_.level() == 0 ? reduced : reduced.slice(own, layout_.owned(bucket).count);
}

void GradientReducer::give_back(std::vector<Buffer>& buffers, Kind kind) {
  for (Buffer& buffer : buffers) {
    memory_.give_back(buffer, kind);
  }
  buffers.clear();
}

bool keeps_whole(const GradientRounds& rounds, int level) {
  return level < 2 || (rounds.rounds == 1 && rounds.each > 1);
}

std::int64_t gradient_bytes(const ZeroLayout& layout, std::int64_t micro_batches,
                            Reproducibility reproducibility) {
  const GradientRounds rounds =
      gradient_rounds(micro_batches, layout.ranks(), layout.level(), reproducibility);
  const std::int64_t locals = sums_kept(rounds.each, reproducibility);
  const std::int64_t shards = sums_kept(rounds.rounds, reproducibility);
  std::int64_t elements = 0;
  std::int64_t largest = 0;
  for (int b = 0; b < layout.buckets(); ++b) {
    const bool sums_whole = layout.level() < 2 || rounds.each > 1;
    const bool keeps_shards = layout.level() >= 2 && (rounds.rounds > 1 || rounds.each == 1);
    elements += sums_whole ? locals * layout.padded(b) : 0;
    elements += keeps_shards ? shards * layout.block(b) : 0;
    largest = std::max(largest, layout.padded(b));
  }
  // Buckets that are being filled or reduced, and the shard that is copied out of one.
  const auto moving = static_cast<std::int64_t>(GradientReducer::kInFlight) + 1;
  if (layout.level() >= 2) {
    elements += std::min<std::int64_t>(moving, layout.buckets()) * largest;
  } else if (rounds.each > 1) {
    elements += largest;
  }
  elements += layout.level() >= 2 ? largest / layout.ranks() : 0;
  return elements * size_of(DType::f32);
}

}  // namespace trireme
