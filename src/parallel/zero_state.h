// ZeroState: what data-parallel training keeps of one store, shared out as ZeRO's level says: where
// the computes lie, masters, moments and gradients. A rank has one for each of its stores. The bits
// of an update depend neither on the level nor on the buckets nor, with elastic sums, on the number
// of ranks. All ranks of the group make the same calls. Owned by the training loop; one thread.
//
//   one step:  reducer().begin_step(n), open(m) ..., finish_step()
//              add_squares(squares); norm = gradient_norm(squares.read(), group)
//              update(...)
#pragma once

#include "src/optim/gradient_norm.h"
#include "src/optim/optimizer.h"
#include "src/optim/optimizer_state.h"
#include "src/parallel/gradient_reducer.h"
#include "src/parallel/zero_parameters.h"

namespace trireme {

class ZeroState {
 public:
  struct Options {
    int level = 0;  // of ZeRO
    Reproducibility reproducibility = Reproducibility::elastic;
    std::int64_t bucket_bytes = kDefaultBucketBytes;
    std::vector<ParameterId> borders;  // where buckets had better begin: the layers' first
    OptimizerOptions optimizer;
  };
  // In place of store.allocate(). All outlive this.
  ZeroState(ParameterStore& store, const ZeroTools& tools, const Options& options);

  const ZeroLayout& layout() const { return layout_; }
  ZeroParameters& parameters() { return parameters_; }
  MasterWeights& masters() { return masters_; }
  Optimizer& optimizer() { return optimizer_; }
  GradientReducer& reducer() { return reducer_; }

  // Initial values, from the seed; and what follows a load of pieces_to_load().
  void initialize(std::uint64_t seed);
  void masters_changed();
  std::vector<StatePiece> pieces_to_load() const { return pieces_of(optimizer_); }
  // Over all ranks of the group every element that is primary once.
  std::vector<StatePiece> pieces_to_save() const;

  // After reducer().finish_step(): the squares of the gradients that this rank owns. At level 0
  // every rank of the group owns all of them.
  void add_squares(SquareSums& squares);
  // The optimizer's step on all that this rank owns, and on the way to the other ranks: their
  // computes are there after parameters().need() or settle(). update() waits for them.
  void start_update(const OptimizerUpdate& update);
  void update(const OptimizerUpdate& update);

 private:
  const ParameterStore& store_;
  ZeroTools tools_;
  ZeroLayout layout_;
  ZeroParameters parameters_;
  MasterWeights masters_;
  Optimizer optimizer_;
  GradientReducer reducer_;
};

// sqrt of what the ranks of the group have added to their sums, each square on one rank of it.
double gradient_norm(ExactSum squares, Communicator& group);

}  // namespace trireme
