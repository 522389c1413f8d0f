// GradientReducer: from the gradients of micro-batches to the gradient of the global batch, of the
// parameters of one store. It works in the buckets of a ZeroLayout: as soon as all gradients of a
// bucket are there, and those of the micro-batches before, it adds them to the sum so far; at the
// end of a round (gradient_rounds.h) the communicator reduces the sum while backward goes on.
//
//   reducer.begin_step(micro_batches);            in the global batch of this step
//   for m in reducer.micro_batches():             their numbers, of this rank
//     GradientSink& sink = reducer.open(m);       several may be open at once
//     model.forward_backward(...);                with run.gradients = &sink
//   reducer.finish_step();
//   reducer.sum(bucket)                           over all micro-batches of all ranks: ZeRO 0 the
//                                                 bucket, above this rank's block of it
//
// elastic: the canonical tree over the micro-batches (reduction_tree.h), so that every number of
// ranks and every level of ZeRO gives the same bits; layout and fast: one after the other. In the
// tree an even micro-batch merges nothing and an odd one merges once or more. Pipeline stages would
// wait for one another by turns, so half of the buckets merge a micro-batch later: the same sums,
// evenly spread, in the memory that the last micro-batch needs anyway. Bytes:
// gradient_bytes(). The ranks of the group have to announce gradients in the same order, which
// starts their reductions in the same order: they run the same schedule. Owned by the training
// loop, used by its thread alone.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "src/parallel/gradient_leaf.h"
#include "src/parallel/gradient_rounds.h"

namespace trireme {

class GradientReducer {
 public:
  struct Timings {               // of this step
    double exposed_seconds = 0;  // waited for the communicator
  };
  // From ZeRO 2 on, so many buckets at most are being reduced before backward waits.
  static constexpr std::size_t kInFlight = 2;

  // The layout outlives the reducer.
  GradientReducer(const ZeroLayout& layout, const ZeroTools& tools,
                  Reproducibility reproducibility);
  ~GradientReducer();
  GradientReducer(const GradientReducer&) = delete;
  GradientReducer& operator=(const GradientReducer&) = delete;

  // micro_batches: of the step, over all ranks. ConfigError where the ranks can't share them.
  void begin_step(std::int64_t micro_batches);
  // The numbers of this rank's micro-batches within the global batch of the step, rising.
  const std::vector<std::int64_t>& micro_batches() const { return numbers_; }
  // Micro-batches are opened in their order. The sink is valid until the next begin_step().
  GradientSink& open(std::int64_t m);
  // Every micro-batch has given every gradient. Returns when the sums are there.
  void finish_step();
  // f32 [layout.owned(bucket).count]; valid until the next begin_step().
  View sum(int bucket) const;

  const Timings& timings() const { return timings_; }
  // Of gradient buffers: held now, and the most that ever was.
  std::int64_t buffer_bytes() const { return memory_.bytes(); }
  std::int64_t peak_buffer_bytes() const { return memory_.peak_bytes(); }
  // What the pools keep for them: with steps of different sizes this can be more.
  std::int64_t reserved_buffer_bytes() const { return memory_.reserved_bytes(); }

 private:
  using Kind = GradientMemory::Kind;
  // What there is of the sum of a bucket.
  struct Partial {
    std::int64_t leaves = 0;      // added so far
    std::int64_t rounds = 0;      // reduced so far
    int due = 0;                  // merges of local sums to be made before the next one comes
    std::vector<Buffer> local;    // the stack of this round's partial sums, [padded]
    std::vector<Buffer> reduced;  // the stack of sums over rounds: [padded], or [block]
  };
  struct Reduction {
    int bucket = 0;
    Buffer buffer;
    Pending pending;
  };

  Partial& partial(int bucket) { return partials_[static_cast<std::size_t>(bucket)]; }
  void advance(int bucket);
  void add_leaf(int bucket, Buffer leaf);
  void start_reduction(int bucket);
  void finish_oldest();
  bool keeps_whole() const;
  void add_round(int bucket, Buffer& whole);
  int merges(std::int64_t index, std::int64_t count) const;
  void merge_top(std::vector<Buffer>& stack, Kind kind, int merges);
  void give_back(std::vector<Buffer>& buffers, Kind kind);

  const ZeroLayout& layout_;
  ZeroTools tools_;
  Reproducibility reproducibility_;
  GradientRounds rounds_;              // of this step
  std::vector<std::int64_t> numbers_;  // of this step
  GradientMemory memory_;
  bool in_step_ = false;
  std::vector<std::unique_ptr<GradientLeaf>> leaves_;  // opened in this step
  std::vector<Partial> partials_;
  std::vector<bool> merges_late_;  // by bucket
  std::deque<Reduction> in_flight_;
  Timings timings_;
};

// Whether a rank's reduced gradients stay in whole buckets. Where whole gradients meet once a step,
// their memory exists anyway; a pool keeps what it gets back, so that separate shards would come on
// top.
bool keeps_whole(const GradientRounds& rounds, int level);

// The most bytes of gradients at one time in a step of `micro_batches`, over all ranks, where one
// micro-batch is open at a time: the sums that wait for others, and the buckets that are being
// filled and reduced.
std::int64_t gradient_bytes(const ZeroLayout& layout, std::int64_t micro_batches,
                            Reproducibility reproducibility);

}  // namespace trireme
