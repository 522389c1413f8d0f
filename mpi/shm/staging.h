// Pieces of large buffers on their way through inlets (layout.h), in lockstep: while a rank puts
// piece c in, it takes piece c-1 out, which all had put in when they met. Two inlets do: who puts
// piece c in has met everybody after they took out piece c-2. An operation's post comes first, so
// that all inlets are free.
#pragma once

#include "mpi/shm/group.h"

namespace trireme {

// Pieces of `most` bytes, or elements, that `total` is cut into.
constexpr std::int64_t pieces_of(std::int64_t total, std::int64_t most) {
  return (total + most - 1) / most;
}

// Whose turn it is for piece c.
constexpr std::uint64_t turn_of(std::int64_t c) { return static_cast<std::uint64_t>(c); }

// put_in(c) and take_out(c) for c in [0, pieces); the same number on all ranks.
template <class PutIn, class TakeOut>
void stage(ShmGroup& group, Exchange& exchange, std::int64_t pieces, PutIn put_in,
           TakeOut take_out) {
  for (std::int64_t c = 0; c <= pieces; ++c) {
    if (c < pieces) {
      put_in(c);
    }
    if (c > 0) {
      take_out(c - 1);
    }
    if (c < pieces) {
      group.meet(exchange);
    }
  }
}

}  // namespace trireme
