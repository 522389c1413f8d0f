// Host reading: of the pieces on disk that several ranks of a host want, each is read once, by one
// of them, and handed on. A tensor that tensor parallelism cuts by columns lies row after row:
// every rank wants a part of every block, and would read them all; replicas want the same blocks
// anyway.
//
//   plan:    every rank tells what it wants; a piece goes to the one of those that want it who has
//            the fewest bytes to read so far
//   round k: each rank reads the k-th piece of its own (the next one in the background), and in
//            turn gives each other rank what that wants of it
//
// Bytes: from the disk, what the host wants, once; between ranks, at most what each wants, in whole
// digest blocks. Three buffers of a piece a rank. Who takes a block compares its digest.
#pragma once

#include <functional>
#include <vector>

#include "io/checkpoint/load/piece.h"
#include "mpi/communicator.h"

namespace trireme {

// A piece that a rank reads, for itself and for others.
struct ReadingTurn {
  struct Client {
    int rank = 0;
    PieceBlocks blocks;
  };
  Piece piece;                  // all that anybody wants of it
  std::vector<Client> clients;  // the others
};

struct HostPlan {
  std::vector<std::size_t> alone;               // of this rank's pieces: those that it alone wants
  std::vector<std::vector<ReadingTurn>> turns;  // by rank of the host, in order
};

// Pure: what each rank wants, by rank and without repetitions; `rank` is this one.
HostPlan plan_host_reading(const std::vector<std::vector<Piece>>& wanted, int rank);
// Collective over the ranks of a host.
HostPlan plan_host_reading(Communicator& host, const std::vector<Piece>& wanted);

struct HostReadingHooks {
  // Reads the turn's blocks to their places in `buffer` [kPieceBytes], on a thread of its own. What
  // can't be read has no good digest; what it throws ends read_once() on this rank.
  std::function<void(const ReadingTurn&, std::byte* buffer)> read;
  // Of a piece that this rank wants: its blocks are in their places, from rank `reader`.
  std::function<void(const ReadingTurn&, int reader, const std::byte* buffer)> take;
  // Of the piece's shard file.
  std::function<std::int64_t(const Piece&)> shard_bytes;
};

// Collective over the ranks of a host, all with the same turns.
void read_once(Communicator& host, const HostPlan& plan, const HostReadingHooks& hooks);

}  // namespace trireme
