// The exchange: digest blocks out of other nodes' memory, through the communicator. Ranks form a
// ring: in round d each asks the rank d behind it and serves the rank d before it, one piece at a
// time, so that a rank needs two buffers of a piece, whatever the number of ranks. Requests go
// ahead of all data, by all-to-all: 32 bytes for each piece.
//
// Bytes: what is asked for, once. A server does not check what it sends; who asked does.
#pragma once

#include <functional>
#include <vector>

#include "io/checkpoint/load/piece.h"
#include "mpi/communicator.h"

namespace trireme {

// A piece of a shard that is in the server's `entry`-th folder.
struct PieceRequest {
  int rank = 0;  // of the server
  std::int64_t entry = 0;
  Piece piece;
};

struct ExchangeHooks {
  // Bytes of those blocks, from the manifest.
  std::function<std::int64_t(const PieceRequest&)> bytes;
  // Fills `buffer` [bytes(request)] with the blocks, one straight behind the other. Does not throw.
  std::function<void(const PieceRequest&, std::byte* buffer)> serve;
  // Takes the answer to the i-th of this rank's requests, in [kPieceBytes] that it may change.
  std::function<void(std::size_t i, std::byte* buffer)> take;
};

// Collective; ranks ask for as many as they like, but not from themselves.
void exchange_pieces(Communicator& comm, const std::vector<PieceRequest>& requests,
                     const ExchangeHooks& hooks);

}  // namespace trireme
