// Lists the training state as pieces of parameters, for saving and loading: the master weights and
// optimizer state of each range of a parameter that a rank holds. Pure functions over views.
#pragma once

#include <vector>

#include "src/optim/optimizer.h"

namespace trireme {

// StatePiece is the held elements [first, first + count()) of a parameter. blocks_of() in
// src/tensor/place.h gives their positions in the logical tensor.
struct StatePiece {
  ParameterId id = 0;
  std::int64_t first = 0;
  View value;                // f32 [count()]
  std::vector<View> states;  // the optimizer's states, f32 [count()] each
  std::vector<std::string_view> state_names;
  std::int64_t count() const { return value.count; }
};

// Returns everything that the optimizer holds, range by range: what a rank has to load.
std::vector<StatePiece> pieces_of(const Optimizer& optimizer);

// Returns an even share of the pieces, cut anywhere, for rank `rank` of `ranks` that all hold the
// same pieces. Excludes elements of which another rank holds the primary copy.
std::vector<StatePiece> share_to_save(const ParameterStore& store,
                                      const std::vector<StatePiece>& pieces, int rank, int ranks);

}  // namespace trireme
