#include "src/parallel/zero_state.h"

#include <cmath>

#include "src/nn/initial_values.h"

namespace trireme {

ZeroState::ZeroState(ParameterStore& store, const ZeroTools& tools, const Options& options)
    : store_(store),
      tools_(tools),
      layout_(store, options.level, {tools.dp.size(), tools.dp.rank()},
              cut_into_buckets(store, options.bucket_bytes, options.borders)),
      parameters_(store, layout_, tools),
      masters_(store, parameters_.held()),
      optimizer_(masters_, options.optimizer),
      reducer_(layout_, tools, options.reproducibility) {}

void ZeroState::initialize(std::uint64_t seed, bool with_frozen) {
  masters_.initialize(seed);
  optimizer_.start_average();
  Pool passing(tools_.context.device());  // returns its memory to the system when it ends
  for (ParameterId id = 0; id < store_.count(); ++id) {
    if (layout_.bucket_of(id) < 0 && (with_frozen || !store_[id].frozen)) {
      const Tensor values(passing, store_[id].shape(), DType::f32);
      set_initial_values(store_[id], seed, 0, values.view(), tools_.context);
      tools_.context.kernels().cast(tools_.context.stream(), store_.compute(id), values.view());
    }
  }
  tools_.context.stream().synchronize();  // before the memory of `passing` goes away
  masters_changed();
}

void ZeroState::masters_changed() {
  masters_.refresh_working_copies();
  for (int b = 0; b < layout_.buckets(); ++b) {
    parameters_.publish(b);
  }
  parameters_.settle();
}

std::vector<StatePiece> ZeroState::pieces_to_save() const {
  const bool same = layout_.level() == 0;
  return share_to_save(store_, pieces_of(optimizer_), same ? layout_.rank() : 0,
                       same ? layout_.ranks() : 1);
}

void ZeroState::add_squares(SquareSums& squares) {
  for (int b = 0; b < layout_.buckets(); ++b) {
    optimizer_.keep_zeros(b, reducer_.sum(b));
    squares.add(store_, layout_.owned(b).first, reducer_.sum(b));
  }
}

// The parameters that forward reads first are updated first.
void ZeroState::start_update(const OptimizerUpdate& update) {
  for (int b = layout_.buckets() - 1; b >= 0; --b) {
    parameters_.settle(b);
    optimizer_.step(b, reducer_.sum(b), update);
    parameters_.publish(b);
  }
}

void ZeroState::update(const OptimizerUpdate& update) {
  start_update(update);
  parameters_.settle();
}

double gradient_norm(ExactSum squares, Communicator& group) {
  const auto words = squares.words();
  group
      .all_reduce({words.data(), static_cast<std::int64_t>(words.size()), DType::i64},
                  ReduceOp::sum)
      .wait();
  return std::sqrt(squares.value());
}

}  // namespace trireme
