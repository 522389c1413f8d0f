// GradientReducer sums the gradients of micro-batches to the gradient of the global batch, for the
// parameters of one store. It works in the buckets of a ZeroLayout: as soon as all gradients of a
// bucket are ready, and those of the micro-batches before, it adds them to the sum so far; at the
// end of a round (gradient_rounds.h), the communicator reduces the sum while backward continues.
//
//   reducer.begin_step(micro_batches);            number of them in the step's global batch
//   for m in reducer.micro_batches():             the numbers of this rank's
//     GradientSink& sink = reducer.open(m);       several may be open at once
//     model.forward_backward(...);                with run.gradients = &sink
//   reducer.finish_step();
//   reducer.sum(bucket)                           over all micro-batches of all ranks: with ZeRO 0
//                                                 the whole bucket, otherwise this rank's block
//
// In elastic mode, the sum is the canonical tree over the micro-batches (reduction_tree.h), so that
// every number of ranks and every level of ZeRO gives the same bits; in layout and fast modes, the
// micro-batches are added one after the other. In the tree, an even micro-batch merges nothing and
// an odd one merges once or more. Pipeline stages would wait for one another by turns, so half of
// the buckets merge one micro-batch later: the same sums, evenly spread, in the memory that the
// last micro-batch needs anyway. Buckets that are handed over (StagedGradients) do not wait.
// gradient_bytes() gives the memory. The ranks of the group must announce gradients in the same
// order, as they do when they run the same schedule, because that starts their reductions in the
// same order. Owned by the training loop and used by its thread alone.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "src/compute/stream_seconds.h"
#include "src/parallel/gradient_leaf.h"
#include "src/parallel/gradient_rounds.h"

namespace trireme {

class GradientReducer {
 public:
  struct Timings {          // of the current step
    StreamSeconds exposed;  // time that the stream waited for the communicator
  };
  // From ZeRO 2 on, at most this many buckets are reduced at a time; backward waits for the oldest.
  static constexpr std::size_t kInFlight = 2;

  // The layout, and what the tools refer to, must outlive the reducer.
  GradientReducer(const ZeroLayout& layout, const ZeroTools& tools,
                  Reproducibility reproducibility);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // micro_batches: number in the step, over all ranks. Throws ConfigError if the ranks cannot
  // divide them.
  void begin_step(std::int64_t micro_batches);
  // Returns the numbers of this rank's micro-batches within the global batch of the step, rising.
  const std::vector<std::int64_t>& micro_batches() const { return numbers_; }
  // Returns the sink for micro-batch m, valid until the next begin_step(). Micro-batches are opened
  // in their order.
  GradientLeaf& open(std::int64_t m);
  // Waits until all sums are complete. Throws InternalError if a micro-batch lacks a gradient.
  void finish_step();
  // Returns f32 [layout.owned(bucket).count], valid until the next begin_step().
  View sum(int bucket) const;

  const Timings& timings() const { return timings_; }
  // Return the bytes of gradient buffers now, and the most at one time.
  std::int64_t buffer_bytes() const { return memory_.bytes(); }
  std::int64_t peak_buffer_bytes() const { return memory_.peak_bytes(); }
  // Returns the memory whose buckets the leaves have.
  const GradientMemory& memory() const { return memory_; }
  // Returns the bytes that the pools keep for them, which can be more if steps differ in size.
  std::int64_t reserved_buffer_bytes() const { return memory_.reserved_bytes(); }

 private:
  using Kind = GradientMemory::Kind;
  // Partial holds the parts of one bucket's sum that exist so far.
  struct Partial {
    std::int64_t leaves = 0;    // number of micro-batches added so far
    std::int64_t rounds = 0;    // number of rounds reduced so far
    int due = 0;                // merges of local sums to make before the next micro-batch is added
    std::vector<Buffer> local;  // stack of this round's partial sums, [padded]
    std::vector<Buffer> reduced;  // stack of sums over rounds: [padded] or [block]
  };
  struct Reduction {
    int bucket = 0;
    Buffer buffer;
    Pending pending;
  };

  Partial& partial(int bucket) { return partials_[static_cast<std::size_t>(bucket)]; }
  void advance(int bucket);
  void add_leaf(int bucket, GradientLeaf& leaf);
  void start_reduction(int bucket);
  void finish_oldest();
  bool keeps_whole() const;
  void add_round(int bucket, Buffer& whole);
  int merges(std::int64_t index, std::int64_t count) const;
  void merge_top(std::vector<Buffer>& stack, Kind kind, int merges, ConstView above = {});
  void give_back(std::vector<Buffer>& buffers, Kind kind);

  const ZeroLayout& layout_;
  ZeroTools tools_;
  Reproducibility reproducibility_;
  GradientRounds rounds_;              // of the current step
  std::vector<std::int64_t> numbers_;  // of the current step
  GradientMemory memory_;
  bool in_step_ = false;
  std::vector<std::unique_ptr<GradientLeaf>> leaves_;  // those opened in the current step
  std::vector<Partial> partials_;
  std::vector<bool> merges_late_;  // by bucket
  std::deque<Reduction> in_flight_;
  Timings timings_;
};

// Returns whether a rank's reduced gradients stay in whole buckets. If a step has one round of
// several micro-batches, whole buckets are allocated anyway; a pool keeps memory that it gets back,
// so that separate shards would need additional memory.
bool keeps_whole(const GradientRounds& rounds, int level);

// Returns the most bytes of gradients at one time in a step of `micro_batches`, over all ranks, if
// one micro-batch is open at a time: the partial sums, and the buckets that are being filled and
// reduced.
std::int64_t gradient_bytes(const ZeroLayout& layout, std::int64_t micro_batches,
                            Reproducibility reproducibility);

}  // namespace trireme
