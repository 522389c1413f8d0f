// Host reading makes sure that a piece on disk that several ranks of a host want is read only once,
// by one of them, which sends it to the others. If tensor parallelism divides a tensor by columns,
// every rank wants a part of each digest block, since tensors are stored by rows, and would read
// the whole tensor. Replicas want the same blocks anyway.
//
//   plan:     every rank announces what it wants; each piece is read by the rank, of those that
//             want it, that has the fewest bytes to read so far
//   round k:  each rank reads the k-th piece of its own (and the next one in the background), and
//             sends each other rank in turn what that rank wants of it
//
// Bytes: what the host wants is read from the disk once; each rank receives at most what it wants,
// in whole digest blocks and any blocks between them. Each rank has three buffers of a piece. The
// rank that uses a block compares its digest.
#pragma once

#include <functional>
#include <vector>

#include "io/checkpoint/load/piece.h"
#include "mpi/communicator.h"

namespace trireme {

// A piece that one rank reads, for itself and for others.
struct ReadingTurn {
  struct Client {
    int rank = 0;
    PieceBlocks blocks;
  };
  Piece piece;                  // all blocks of it that any rank wants
  std::vector<Client> clients;  // the other ranks that want it
};

struct HostPlan {
  std::vector<std::size_t> alone;  // indices of this rank's pieces that no other rank wants
  std::vector<std::vector<ReadingTurn>> turns;  // by rank of the host, in reading order
};

// Plans for rank `rank`, given what each rank wants, by rank and without duplicates. Pure function.
HostPlan plan_host_reading(const std::vector<std::vector<Piece>>& wanted, int rank);
// Collective over the ranks of a host.
HostPlan plan_host_reading(Communicator& host, const std::vector<Piece>& wanted);

struct HostReadingHooks {
  // Reads the turn's blocks to their places in `buffer` [kPieceBytes], on a background thread. If
  // it can't, it leaves bytes whose digests do not match; an exception ends read_once() on this
  // rank.
  std::function<void(const ReadingTurn&, std::byte* buffer)> read;
  // Called for each turn that this rank wants, with its blocks in their places, as read by rank
  // `reader`. buffer: [kPieceBytes].
  std::function<void(const ReadingTurn&, int reader, const std::byte* buffer)> take;
  // Returns the size of the piece's shard file.
  std::function<std::int64_t(const Piece&)> shard_bytes;
};

// Collective over the ranks of a host, which all have the same turns.
void read_once(Communicator& host, const HostPlan& plan, const HostReadingHooks& hooks);

}  // namespace trireme
