#include "io/checkpoint/load/exchange.h"

#include <gtest/gtest.h>

#include "mpi/thread/thread_world.h"
#include "src/base/philox.h"

namespace trireme {
namespace {

// Returns byte `i` of piece `number` on rank `server`.
std::byte byte_at(int server, std::int64_t number, std::int64_t i) {
  return static_cast<std::byte>(
      mix64(static_cast<std::uint64_t>(server * 1'000'003 + number * 10'007 + i)));
}

std::int64_t bytes_of_request(const PieceRequest& r) {
  return 100 * static_cast<std::int64_t>(r.piece.blocks.count()) + r.piece.number;
}

// Each rank requests a different number of pieces, and some ranks none.
void exchange(int ranks, std::uint64_t seed) {
  ThreadWorld(ranks).run([&](Communicator& comm) {
    std::vector<PieceRequest> requests;
    const std::uint64_t count =
        ranks == 1 ? 0 : mix64(seed + static_cast<std::uint64_t>(comm.rank())) % 9;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t draw = mix64(seed * 31 + count * 7 + i);
      const int other =
          (comm.rank() + 1 + static_cast<int>(draw % static_cast<std::uint64_t>(ranks - 1))) %
          ranks;
      const PieceBlocks blocks(1 + draw % 255);
      requests.push_back(
          {other,
           comm.rank(),
           {static_cast<std::int64_t>(i), static_cast<std::int64_t>(draw % 5), blocks}});
    }
    std::vector<int> taken(requests.size(), 0);
    ExchangeHooks hooks;
    hooks.bytes = bytes_of_request;
    hooks.serve = [&](const PieceRequest& r, std::byte* buffer) {
      EXPECT_EQ(r.entry, r.rank) << "the entry is the asking rank's number";
      for (std::int64_t i = 0; i < bytes_of_request(r); ++i) {
        buffer[i] = byte_at(comm.rank(), r.piece.number, i);
      }
    };
    hooks.take = [&](std::size_t i, std::byte* buffer) {
      ++taken[i];
      for (std::int64_t at = 0; at < bytes_of_request(requests[i]); ++at) {
        ASSERT_EQ(buffer[at], byte_at(requests[i].rank, requests[i].piece.number, at));
      }
    };
    exchange_pieces(comm, requests, hooks);
    for (const int times : taken) {
      EXPECT_EQ(times, 1);
    }
  });
}

TEST(Exchange, BringsEveryAnswerToWhoAsked) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      exchange(ranks, seed);
    }
  }
}

TEST(Exchange, OneServesAll) {
  ThreadWorld(4).run([](Communicator& comm) {
    std::vector<PieceRequest> requests;
    if (comm.rank() != 2) {
      requests.assign(20, {2, comm.rank(), {0, 3, PieceBlocks(0xFF)}});
    }
    std::size_t served = 0;
    std::size_t took = 0;
    ExchangeHooks hooks;
    hooks.bytes = bytes_of_request;
    hooks.serve = [&](const PieceRequest&, std::byte*) { ++served; };
    hooks.take = [&](std::size_t, std::byte*) { ++took; };
    exchange_pieces(comm, requests, hooks);
    EXPECT_EQ(served, comm.rank() == 2 ? 60U : 0U);
    EXPECT_EQ(took, requests.size());
  });
}

}  // namespace
}  // namespace trireme
