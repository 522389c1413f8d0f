#include "io/checkpoint/load/host_reading.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <map>

#include "io/checkpoint/load/transfer.h"
#include "io/checkpoint/staging.h"
#include "io/checkpoint/workers.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr int kPieceTag = 2;
constexpr std::size_t kPieceWords = 3;  // words of a piece in a message

std::string packed(const std::vector<Piece>& wanted) {
  std::vector<std::int64_t> words;
  for (const Piece& piece : wanted) {
    words.insert(words.end(),
                 {piece.shard, piece.number, static_cast<std::int64_t>(piece.blocks.to_ulong())});
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(words[0])};
}

std::vector<Piece> unpacked(const std::string& text) {
  std::vector<std::int64_t> words(text.size() / sizeof(std::int64_t));
  if (!words.empty()) {  // memcpy must not be given the null pointer of an empty vector
    std::memcpy(words.data(), text.data(), words.size() * sizeof(words[0]));
  }
  std::vector<Piece> wanted;
  for (std::size_t i = 0; i + kPieceWords <= words.size(); i += kPieceWords) {
    wanted.push_back(
        {words[i], words[i + 1], PieceBlocks(static_cast<unsigned long>(words[i + 2]))});
  }
  return wanted;
}

// The bytes from a piece's first wanted block to its last. They are sent in one message, together
// with the blocks between them.
struct Span {
  std::int64_t first = 0;  // bytes from the piece's start
  std::int64_t bytes = 0;
};
Span span_of(const PieceBlocks& blocks, const Piece& piece, std::int64_t shard_bytes) {
  std::int64_t first = 0;
  while (!blocks.test(static_cast<std::size_t>(first))) {
    ++first;
  }
  std::int64_t end = kPieceBlocks;
  while (!blocks.test(static_cast<std::size_t>(end - 1))) {
    --end;
  }
  const std::int64_t left = shard_bytes - piece.number * kPieceBytes;
  return {first * kDigestBlockBytes,
          std::min(end * kDigestBlockBytes, left) - first * kDigestBlockBytes};
}

const ReadingTurn::Client* client_of(const ReadingTurn& turn, int rank) {
  const auto found = std::find_if(turn.clients.begin(), turn.clients.end(),
                                  [=](const ReadingTurn::Client& c) { return c.rank == rank; });
  return found == turn.clients.end() ? nullptr : &*found;
}

const ReadingTurn* turn_of(const HostPlan& plan, int rank, std::size_t round) {
  const auto& turns = plan.turns[static_cast<std::size_t>(rank)];
  return round < turns.size() ? &turns[round] : nullptr;
}

// In one round, sends each other rank what it wants of this rank's turn, and takes what this rank
// wants of theirs. own, in: [kPieceBytes].
void hand_on(Communicator& host, const HostPlan& plan, std::size_t round,
             const HostReadingHooks& hooks, std::byte* own, std::byte* in) {
  const ReadingTurn* mine = turn_of(plan, host.rank(), round);
  for (int distance = 1; distance < host.size(); ++distance) {
    const int to = (host.rank() + distance) % host.size();
    const int from = (host.rank() - distance + host.size()) % host.size();
    const ReadingTurn* theirs = turn_of(plan, from, round);
    const auto* wants = theirs == nullptr ? nullptr : client_of(*theirs, host.rank());
    const auto* client = mine == nullptr ? nullptr : client_of(*mine, to);
    Transfer receiving;
    Transfer sending;
    if (wants != nullptr) {
      const Piece& piece = theirs->piece;
      const Span span = span_of(wants->blocks, piece, hooks.shard_bytes(piece));
      receiving.start(host.recv({in + span.first, span.bytes, DType::u8}, from, kPieceTag));
    }
    if (client != nullptr) {
      const Piece& piece = mine->piece;
      const Span span = span_of(client->blocks, piece, hooks.shard_bytes(piece));
      sending.start(host.send({own + span.first, span.bytes, DType::u8}, to, kPieceTag));
    }
    receiving.wait();
    if (wants != nullptr) {
      hooks.take(*theirs, from, in);
    }
    sending.wait();
  }
}

}  // namespace

HostPlan plan_host_reading(const std::vector<std::vector<Piece>>& wanted, int rank) {
  struct Want {
    std::size_t rank;
    std::size_t index;  // in the list of what the rank wants
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Want>> pieces;
  for (std::size_t r = 0; r < wanted.size(); ++r) {
    for (std::size_t i = 0; i < wanted[r].size(); ++i) {
      pieces[{wanted[r][i].shard, wanted[r][i].number}].push_back({r, i});
    }
  }
  HostPlan plan;
  plan.turns.resize(wanted.size());
  std::vector<std::size_t> load(wanted.size(), 0);  // blocks to read, by rank
  for (const auto& [key, wants] : pieces) {
    if (wants.size() == 1) {
      const Want& only = wants.front();
      load[only.rank] += wanted[only.rank][only.index].blocks.count();
      if (static_cast<int>(only.rank) == rank) {
        plan.alone.push_back(only.index);
      }
      continue;
    }
    const auto reader =
        std::min_element(wants.begin(), wants.end(),
                         [&](const Want& a, const Want& b) { return load[a.rank] < load[b.rank]; });
    ReadingTurn turn{{key.first, key.second, {}}, {}};
    for (const Want& want : wants) {
      const PieceBlocks& blocks = wanted[want.rank][want.index].blocks;
      turn.piece.blocks |= blocks;
      if (want.rank != reader->rank) {
        turn.clients.push_back({static_cast<int>(want.rank), blocks});
      }
    }
    load[reader->rank] += turn.piece.blocks.count();
    plan.turns[reader->rank].push_back(std::move(turn));
  }
  return plan;
}

HostPlan plan_host_reading(Communicator& host, const std::vector<Piece>& wanted) {
  std::vector<std::vector<Piece>> of_all;
  for (const std::string& text : all_gather_text(host, packed(wanted))) {
    of_all.push_back(unpacked(text));
  }
  return plan_host_reading(of_all, host.rank());
}

void read_once(Communicator& host, const HostPlan& plan, const HostReadingHooks& hooks) {
  std::size_t rounds = 0;
  for (const auto& turns : plan.turns) {
    rounds = std::max(rounds, turns.size());
  }
  if (rounds == 0) {
    return;
  }
  const PageBuffer in(kPieceBytes);
  const std::array<PageBuffer, 2> own = {PageBuffer(kPieceBytes), PageBuffer(kPieceBytes)};
  std::exception_ptr broken;
  BackgroundJob reading;
  const auto start_reading = [&](std::size_t round) {
    if (const ReadingTurn* turn = turn_of(plan, host.rank(), round)) {
      const auto read = [&hooks, &broken, turn, to = own[round % 2].data()] {
        try {
          hooks.read(*turn, to);
        } catch (...) {
          broken = std::current_exception();
        }
      };
      reading.start(read);
      if (reading.state() == BackgroundJob::State::failed) {
        read();  // no thread could be started: read now, because the other ranks wait for the bytes
        reading.succeed();
      }
    }
  };
  start_reading(0);
  for (std::size_t round = 0; round < rounds; ++round) {
    reading.wait();
    if (broken != nullptr) {
      std::rethrow_exception(broken);
    }
    start_reading(round + 1);
    std::byte* const buffer = own[round % 2].data();
    if (const ReadingTurn* mine = turn_of(plan, host.rank(), round)) {
      hooks.take(*mine, host.rank(), buffer);
    }
    hand_on(host, plan, round, hooks, buffer, in.data());
  }
}

}  // namespace trireme
