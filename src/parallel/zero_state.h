// ZeroState holds what data-parallel training keeps of one store, divided by the level of ZeRO:
// working copies, masters, moments and gradients. A rank has one for each of its stores. The bits
// of an update do not depend on the level or the buckets, nor, with elastic sums, on the number of
// ranks. All ranks of the group make the same calls. Owned by the training loop; one thread.
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
    int level = 0;  // level of ZeRO
    Reproducibility reproducibility = Reproducibility::elastic;
    std::int64_t bucket_bytes = kDefaultBucketBytes;
    std::vector<ParameterId> borders;  // where buckets should begin: each layer's first
    OptimizerOptions optimizer;
  };
  // Replaces store.allocate(). All arguments outlive this.
  ZeroState(ParameterStore& store, const ZeroTools& tools, const Options& options);

  const ZeroLayout& layout() const { return layout_; }
  ZeroParameters& parameters() { return parameters_; }
  MasterWeights& masters() { return masters_; }
  Optimizer& optimizer() { return optimizer_; }
  GradientReducer& reducer() { return reducer_; }

  // Sets initial values from the seed; with_frozen: also those of frozen parameters.
  // masters_changed() must follow a load of pieces_to_load(): it refreshes and publishes the
  // working copies.
  void initialize(std::uint64_t seed, bool with_frozen = true);
  void masters_changed();
  std::vector<StatePiece> pieces_to_load() const { return pieces_of(optimizer_); }
  // Returns this rank's part; over all ranks of the group, each primary element occurs once.
  std::vector<StatePiece> pieces_to_save() const;

  // Adds the squares of the gradients that this rank owns, after reducer().finish_step(), and after
  // Optimizer::keep_zeros(). At level 0, every rank of the group owns all gradients.
  void add_squares(SquareSums& squares);
  // start_update() runs the optimizer on all that this rank owns, and starts to send the results to
  // the other ranks. A working copy has arrived after parameters().need() or settle(). update()
  // waits for all of them.
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

// Returns the square root of the sum over the group. Each square must be in the sum of one rank
// only.
double gradient_norm(ExactSum squares, Communicator& group);

}  // namespace trireme
