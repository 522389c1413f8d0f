// Moves pieces of large buffers through inlets (layout.h) in lockstep: while a rank puts piece c
// in, it takes out piece c-1, which all ranks had put in when they met. Two inlets are enough,
// because a rank that puts piece c in has met all others after they took out piece c-2. The
// operation's post comes first, so all inlets are free at the start. Thread rule: group.h.
#pragma once

#include "mpi/shm/group.h"

namespace trireme {

// Returns the number of pieces of `most` bytes, or elements, into which `total` is divided.
constexpr std::int64_t pieces_of(std::int64_t total, std::int64_t most) {
  return (total + most - 1) / most;
}

// Returns the turn whose inlet piece c uses.
constexpr std::uint64_t turn_of(std::int64_t c) { return static_cast<std::uint64_t>(c); }

// Calls put_in(c) and take_out(c) for c in [0, pieces). `pieces` is the same on all ranks.
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
