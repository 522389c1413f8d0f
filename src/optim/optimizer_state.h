// The state of training as pieces of parameters, for whoever saves and loads it: masters and
// optimizer state of each range of a parameter that a rank holds. Pure functions over views.
#pragma once

#include <vector>

#include "src/optim/optimizer.h"

namespace trireme {

// The held elements [first, first + count()) of a parameter (blocks_of() in src/tensor/place.h says
// where they lie in the logical tensor).
struct StatePiece {
  ParameterId id = 0;
  std::int64_t first = 0;
  View value;                // f32 [count()]
  std::vector<View> states;  // the optimizer's, f32 [count()] each
  std::vector<std::string_view> state_names;
  std::int64_t count() const { return value.count; }
};

// All that the optimizer holds, range after range: what a rank has to load.
std::vector<StatePiece> pieces_of(const Optimizer& optimizer);

// An even share of the pieces, cut anywhere, for rank `rank` of `ranks` that all hold the same. Not
// in it: what is not its Place's primary, which another rank has.
std::vector<StatePiece> share_to_save(const ParameterStore& store,
                                      const std::vector<StatePiece>& pieces, int rank, int ranks);

}  // namespace trireme
