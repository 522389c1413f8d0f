// Fetches digest blocks from other nodes' memory through the communicator. Ranks form a ring: in
// round d, each rank requests from the rank d after it and serves the rank d before it, one piece
// at a time. Thus a rank needs two buffers of a piece, whatever the number of ranks. All requests
// are sent before any data, by all-to-all: 32 bytes per piece.
//
// Bytes: each requested block is sent once. The server does not check what it sends; the rank that
// requested it does.
#pragma once

#include <functional>
#include <vector>

#include "io/checkpoint/load/piece.h"
#include "mpi/communicator.h"

namespace trireme {

// Requests a piece of a shard that is in the server's `entry`-th folder.
struct PieceRequest {
  int rank = 0;  // the server; in a request that a rank has received, the client
  std::int64_t entry = 0;
  Piece piece;
};

struct ExchangeHooks {
  // Returns the bytes of the requested blocks, from the manifest.
  std::function<std::int64_t(const PieceRequest&)> bytes;
  // Fills `buffer` [bytes(request)] with the blocks, without gaps. Must not throw.
  std::function<void(const PieceRequest&, std::byte* buffer)> serve;
  // Receives the answer to this rank's request i in `buffer` [kPieceBytes], which it may change.
  std::function<void(std::size_t i, std::byte* buffer)> take;
};

// Collective. Each rank may make any number of requests, but none to itself.
void exchange_pieces(Communicator& comm, const std::vector<PieceRequest>& requests,
                     const ExchangeHooks& hooks);

}  // namespace trireme
