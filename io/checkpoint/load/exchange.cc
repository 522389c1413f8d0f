#include "io/checkpoint/load/exchange.h"

#include <algorithm>
#include <numeric>

#include "io/checkpoint/load/transfer.h"
#include "io/checkpoint/staging.h"

namespace trireme {
namespace {

constexpr std::int64_t kRequestWords = 4;  // words of a request in a message
constexpr int kRequestTag = 1;

ConstView words_view(const std::vector<std::int64_t>& words) {
  return {words.data(), static_cast<std::int64_t>(words.size()), DType::i64};
}

// Sends this rank's requests to the ranks that serve them. Returns what every rank requests from
// this one, by requesting rank.
std::vector<std::vector<PieceRequest>> inform_servers(
    Communicator& comm, const std::vector<std::vector<std::size_t>>& mine,
    const std::vector<PieceRequest>& requests) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const std::vector<std::int64_t> ones(ranks, 1);
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> words;
  for (const std::vector<std::size_t>& of_rank : mine) {
    counts.push_back(kRequestWords * static_cast<std::int64_t>(of_rank.size()));
    for (const std::size_t i : of_rank) {
      const Piece& piece = requests[i].piece;
      words.insert(words.end(), {requests[i].entry, piece.shard, piece.number,
                                 static_cast<std::int64_t>(piece.blocks.to_ulong())});
    }
  }
  std::vector<std::int64_t> asked(ranks, 0);
  comm.all_to_all(words_view(counts), ones,
                  {asked.data(), static_cast<std::int64_t>(ranks), DType::i64}, ones)
      .wait();
  std::vector<std::int64_t> theirs(
      static_cast<std::size_t>(std::accumulate(asked.begin(), asked.end(), std::int64_t{0})));
  comm.all_to_all(words_view(words), counts,
                  {theirs.data(), static_cast<std::int64_t>(theirs.size()), DType::i64}, asked)
      .wait();
  std::vector<std::vector<PieceRequest>> clients(ranks);
  const std::int64_t* at = theirs.data();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for (std::int64_t n = asked[rank]; n > 0; n -= kRequestWords, at += kRequestWords) {
      const PieceBlocks blocks(static_cast<unsigned long>(at[3]));
      clients[rank].push_back({static_cast<int>(rank), at[0], {at[1], at[2], blocks}});
    }
  }
  return clients;
}

}  // namespace

void exchange_pieces(Communicator& comm, const std::vector<PieceRequest>& requests,
                     const ExchangeHooks& hooks) {
  const int ranks = comm.size();
  std::vector<std::vector<std::size_t>> mine(static_cast<std::size_t>(ranks));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    check(requests[i].rank != comm.rank(), "a rank does not request blocks from itself");
    mine[static_cast<std::size_t>(requests[i].rank)].push_back(i);
  }
  const auto clients = inform_servers(comm, mine, requests);
  const PageBuffer in(kPieceBytes);
  const PageBuffer out(kPieceBytes);
  for (int distance = 1; distance < ranks; ++distance) {
    const int server = (comm.rank() + distance) % ranks;
    const int client = (comm.rank() - distance + ranks) % ranks;
    const auto& asks = mine[static_cast<std::size_t>(server)];
    const auto& serves = clients[static_cast<std::size_t>(client)];
    for (std::size_t k = 0; k < std::max(asks.size(), serves.size()); ++k) {
      Transfer receiving;
      Transfer sending;
      if (k < asks.size()) {
        receiving.start(
            comm.recv({in.data(), hooks.bytes(requests[asks[k]]), DType::u8}, server, kRequestTag));
      }
      if (k < serves.size()) {
        hooks.serve(serves[k], out.data());
        sending.start(
            comm.send({out.data(), hooks.bytes(serves[k]), DType::u8}, client, kRequestTag));
      }
      receiving.wait();
      if (k < asks.size()) {
        hooks.take(asks[k], in.data());
      }
      sending.wait();
    }
  }
}

}  // namespace trireme
