#include "src/optim/optimizer_state.h"

#include <algorithm>

namespace trireme {

std::vector<StatePiece> pieces_of(const Optimizer& optimizer) {
  const MasterWeights& masters = optimizer.masters();
  std::vector<StatePiece> pieces;
  for (int range = 0; range < masters.ranges(); ++range) {
    const std::int64_t begin = masters.held(range).first;
    const std::int64_t end = begin + masters.held(range).working_copies.count;
    for (ParameterId id = 0; id < masters.store().count(); ++id) {
      const Parameter& parameter = masters.store()[id];
      const std::int64_t from = std::max(begin, parameter.offset);
      const std::int64_t n = std::min(end, parameter.offset + parameter.elements()) - from;
      if (n > 0) {
        const std::int64_t at = from - begin;
        StatePiece piece{id, from - parameter.offset, masters.values(range).slice(at, n), {}, {}};
        for (int state = 0; state < optimizer.options().states(); ++state) {
          const std::string_view name = optimizer.state_name(state, parameter);
          if (!name.empty()) {
            piece.states.push_back(optimizer.state(state, range, at, n));
            piece.state_names.push_back(name);
          }
        }
        pieces.push_back(std::move(piece));
      }
    }
  }
  return pieces;
}

std::vector<StatePiece> share_to_save(const ParameterStore& store,
                                      const std::vector<StatePiece>& pieces, int rank, int ranks) {
  std::vector<StatePiece> primary;
  std::int64_t total = 0;
  for (const StatePiece& piece : pieces) {
    if (store[piece.id].place.primary) {
      primary.push_back(piece);
      total += piece.count();
    }
  }
  const IndexRange share = share_of(total, rank, ranks);
  std::vector<StatePiece> cut;
  std::int64_t at = 0;  // first element of the piece, counted over all primary pieces
  for (const StatePiece& piece : primary) {
    const std::int64_t from = std::max<std::int64_t>(share.first - at, 0);
    const std::int64_t n = std::min(share.end() - at, piece.count()) - from;
    at += piece.count();
    if (n > 0) {
      StatePiece part{
          piece.id, piece.first + from, piece.value.slice(from, n), {}, piece.state_names};
      for (const View& state : piece.states) {
        part.states.push_back(state.slice(from, n));
      }
      cut.push_back(std::move(part));
    }
  }
  return cut;
}

}  // namespace trireme
