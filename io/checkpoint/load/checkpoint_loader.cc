#include "io/checkpoint/load/checkpoint_loader.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "io/checkpoint/staging.h"
#include "io/checkpoint/workers.h"
#include "mpi/agreement.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostRepairsTold = 4;

}  // namespace

CheckpointLoader::CheckpointLoader(Communicator& comm, const NodeMap& nodes,
                                   const Inventory& inventory, const StepCandidate& step,
                                   const Manifest& manifest, const ShardIo& io)
    : comm_(comm),
      manifest_(manifest),
      contents_(manifest),
      io_(io),
      disk_(step.disk),
      copies_(find_copies(step, manifest, nodes, inventory.nodes(), comm.rank())) {
  const int node = nodes.any() ? nodes.node_of[static_cast<std::size_t>(comm.rank())] : -1;
  if (node >= 0) {
    served_ = inventory.nodes()[static_cast<std::size_t>(node)].entries;
  }
  join_host();
}

CheckpointLoader::CheckpointLoader(Communicator& self, const fs::path& folder,
                                   const Manifest& manifest, const ShardIo& io)
    : comm_(self),
      manifest_(manifest),
      contents_(manifest),
      io_(io),
      disk_(folder),
      throws_(true),
      copies_(manifest.shards.size(), std::vector{ShardCopy{CopyKind::disk, folder, 0, 0}}) {}

// Sets host_ and host_ranks_. If no host has several ranks, each rank reads for itself.
void CheckpointLoader::join_host() {
  std::map<std::string, std::vector<int>> hosts;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    hosts[comm_.host(rank)].push_back(rank);
  }
  host_ranks_ = hosts.at(comm_.host(comm_.rank()));
  if (disk_.empty() || hosts.size() == static_cast<std::size_t>(comm_.size())) {
    return;
  }
  host_ = comm_.split(host_ranks_.front(), comm_.rank(), "host");
  if (host_->size() == 1) {
    host_.reset();
  }
}

std::string CheckpointLoader::load(std::span<const TensorBlock> blocks) {
  const Stopwatch watch;
  std::vector<Fetch> all;
  for (Piece& piece : plan_read(manifest_, blocks)) {
    all.push_back({std::move(piece)});
  }
  for (const TensorBlock& block : blocks) {
    stats_.wanted_bytes += block.bytes();
  }
  std::string faults;
  do {
    read_files(due(all, &ShardCopy::is_near));
    read_far(due(all, &ShardCopy::is_far));
    read_disk(due(all, &ShardCopy::is_disk));
  } while (!is_over(all, faults));
  stats_.seconds = watch.seconds();
  return faults;
}

const ShardCopy* CheckpointLoader::next_copy(const Fetch& fetch) const {
  const auto& copies = copies_[static_cast<std::size_t>(fetch.piece.shard)];
  return !fetch.done && fetch.copy < copies.size() ? &copies[fetch.copy] : nullptr;
}

// Returns the pieces whose next copy is of the wanted kind.
CheckpointLoader::Fetches CheckpointLoader::due(std::vector<Fetch>& all,
                                                bool (ShardCopy::*wanted)() const) const {
  Fetches due;
  for (Fetch& fetch : all) {
    const ShardCopy* copy = next_copy(fetch);
    if (copy != nullptr && (copy->*wanted)()) {
      due.push_back(&fetch);
    }
  }
  return due;
}

// Collective. Returns whether every rank has all its pieces, or some rank has a piece without a
// good copy; then sets `faults`.
bool CheckpointLoader::is_over(const std::vector<Fetch>& all, std::string& faults) {
  std::int64_t left = 0;
  std::string lost;
  for (const Fetch& fetch : all) {
    left += next_copy(fetch) != nullptr ? 1 : 0;
    lost = fetch.done || next_copy(fetch) != nullptr ? lost : fetch.fault;
  }
  if (const std::string refused = gather_faults(comm_, refusal_); !refused.empty()) {
    throw PolicyError(refused);
  }
  faults = gather_faults(comm_, lost);
  return !faults.empty() || all_reduce_value(comm_, left, ReduceOp::sum) == 0;
}

// Counts the pieces that were fetched, and moves the others on to their next copy.
void CheckpointLoader::note(const Fetches& tried) {
  for (Fetch* fetch : tried) {
    if (fetch->done) {
      const ShardCopy& copy = copies_[static_cast<std::size_t>(fetch->piece.shard)][fetch->copy];
      const std::int64_t bytes = bytes_of(shard_of(fetch->piece), fetch->piece);
      stats_.bytes[static_cast<std::size_t>(copy.kind)] += bytes;
      stats_.read_bytes += bytes;
    } else {
      note_fault(*fetch);
    }
  }
}

void CheckpointLoader::note_fault(Fetch& fetch) {
  if (fetch.fault.empty()) {
    fetch.fault = fmt::format("{} cannot be opened in {}", shard_of(fetch.piece).file,
                              copy_kind_text(next_copy(fetch)->kind));
  }
  if (stats_.repairs.size() < kMostRepairsTold) {
    stats_.repairs.push_back(fetch.fault);
  }
  ++fetch.copy;
}

// Throws DataError unless the shard's header says what the manifest says.
void CheckpointLoader::check_header(const ShardReader& reader, std::int64_t shard) const {
  const std::vector<std::string> faults = contents_.header_faults(reader.file(), shard);
  if (!faults.empty()) {
    const PageBuffer buffer(kDigestBlockBytes);
    reader.read_blocks(0, 1, buffer.data());  // throws if the header is damaged rather than another
    throw DataError(faults.front());
  }
}

const CheckpointLoader::OpenShard& CheckpointLoader::open_shard(const fs::path& folder,
                                                                std::int64_t shard) {
  const auto [file, is_new] = files_.try_emplace({folder.string(), shard});
  OpenShard& opened = file->second;
  try {
    if (is_new) {
      ShardReader reader(folder, manifest_.shards[static_cast<std::size_t>(shard)], io_.direct);
      check_header(reader, shard);
      opened.reader.emplace(std::move(reader));
    }
  } catch (const Error& e) {
    if (throws_) {
      throw;
    }
    (e.exit_code() == ExitCode::refused ? refusal_ : opened.fault) = e.what();
  }
  return opened;
}

// Reads files on several threads, for this rank alone.
void CheckpointLoader::read_files(const Fetches& due) {
  std::vector<const OpenShard*> shards;
  for (const Fetch* fetch : due) {
    shards.push_back(&open_shard(next_copy(*fetch)->folder, fetch->piece.shard));
  }
  const auto count = static_cast<std::int64_t>(due.size());
  const std::int64_t threads = std::min<std::int64_t>(io_.threads, count);
  while (std::ssize(buffers_) < threads) {
    buffers_.emplace_back(kPieceBytes);
  }
  std::atomic<std::int64_t> next = 0;
  parallel_for(io_.threads, threads, [&](std::int64_t thread) {
    const PageBuffer& buffer = buffers_[static_cast<std::size_t>(thread)];
    for (std::int64_t i = next++; i < count; i = next++) {
      const auto index = static_cast<std::size_t>(i);
      read_file(*due[index], *shards[index], buffer.data());
    }
  });
  note(due);
}

void CheckpointLoader::read_file(Fetch& fetch, const OpenShard& shard, std::byte* buffer) const {
  fetch.fault = shard.fault;
  try {
    if (shard.reader) {
      read_piece(*shard.reader, fetch.piece, buffer);
      take_whole(fetch, buffer);
    }
  } catch (const Error& e) {
    if (throws_) {
      throw;
    }
    fetch.fault = e.what();
  }
}

// Collective. Fetches pieces from other nodes' memory.
void CheckpointLoader::read_far(const Fetches& due) {
  std::vector<PieceRequest> requests;
  for (const Fetch* fetch : due) {
    const ShardCopy& copy = *next_copy(*fetch);
    const Piece& piece = fetch->piece;
    requests.push_back({copy.rank, copy.entry, {piece.shard, piece.number, piece.blocks}});
  }
  const auto any = static_cast<std::int64_t>(due.size());
  if (all_reduce_value(comm_, any, ReduceOp::max) == 0) {
    return;
  }
  ExchangeHooks hooks;
  hooks.bytes = [&](const PieceRequest& r) { return bytes_of(shard_of(r.piece), r.piece); };
  hooks.serve = [&](const PieceRequest& r, std::byte* buffer) { serve(r, buffer); };
  hooks.take = [&](std::size_t i, std::byte* buffer) { take_far(*due[i], buffer); };
  exchange_pieces(comm_, requests, hooks);
  note(due);
}

// If the blocks can't be read, sends zeros, whose digests do not match.
void CheckpointLoader::serve(const PieceRequest& request, std::byte* buffer) const {
  const Piece& piece = request.piece;
  const StoredShard& shard = shard_of(piece);
  const std::int64_t bytes = bytes_of(shard, piece);
  std::byte* at = buffer;
  try {
    const ShardReader reader(served_[static_cast<std::size_t>(request.entry)].path, shard, false);
    for (std::int64_t i = 0; i < kPieceBlocks; ++i) {
      if (piece.blocks.test(static_cast<std::size_t>(i))) {
        const std::int64_t block = piece.first_block() + i;
        reader.read_unchecked(block, block + 1, at);
        at += digest_block_bytes(shard, block);
      }
    }
  } catch (const Error&) {
    std::memset(buffer, 0, static_cast<std::size_t>(bytes));
  }
  fault("memory.serve", buffer, bytes);
}

// Returns what is wrong with a block that another rank has sent, or "".
std::string CheckpointLoader::transit_fault(const Fetch& fetch, std::int64_t block,
                                            const std::byte* at, int sender) const {
  const StoredShard& shard = shard_of(fetch.piece);
  if (xxh3(at, digest_block_bytes(shard, block)) ==
      shard.block_digests[static_cast<std::size_t>(block)]) {
    return "";
  }
  const ShardCopy& copy = *next_copy(fetch);
  return fmt::format(
      "{} in {}: block {} of {}, as received from rank {} (host {}), does not have the digest in "
      "the manifest: it was damaged there or on the way",
      copy.folder.string(), copy_kind_text(copy.kind), block, shard.file, sender,
      comm_.host(sender));
}

// The blocks arrive without gaps. Moves each to its place, the last one first.
void CheckpointLoader::take_far(Fetch& fetch, std::byte* buffer) const {
  const StoredShard& shard = shard_of(fetch.piece);
  std::int64_t end = bytes_of(shard, fetch.piece);
  for (std::int64_t i = kPieceBlocks - 1; i >= 0; --i) {
    if (!fetch.piece.blocks.test(static_cast<std::size_t>(i))) {
      continue;
    }
    const std::int64_t block = fetch.piece.first_block() + i;
    const std::int64_t bytes = digest_block_bytes(shard, block);
    end -= bytes;
    std::byte* const at = buffer + i * kDigestBlockBytes;
    std::memmove(at, buffer + end, static_cast<std::size_t>(bytes));
    fetch.fault = transit_fault(fetch, block, at, next_copy(fetch)->rank);
    if (!fetch.fault.empty()) {
      return;
    }
  }
  take_whole(fetch, buffer);
}

// Hands out a piece. If it is not encrypted, its digests match; else it may still be damaged.
void CheckpointLoader::take_whole(Fetch& fetch, const std::byte* buffer) const {
  try {
    hand_out(fetch.piece, buffer, manifest_);
    fetch.done = true;
  } catch (const DataError& error) {
    const ShardCopy& copy = *next_copy(fetch);
    fetch.fault =
        fmt::format("{} in {}: {}", copy.folder.string(), copy_kind_text(copy.kind), error.what());
    if (throws_) {
      throw DataError(fetch.fault);
    }
  }
}

// Pieces that several ranks of this host want are read by one of them.
void CheckpointLoader::read_disk(const Fetches& due) {
  if (host_ == nullptr) {
    read_files(due);
    return;
  }
  std::vector<Piece> wanted;
  for (const Fetch* fetch : due) {
    wanted.push_back({fetch->piece.shard, fetch->piece.number, fetch->piece.blocks});
  }
  const HostPlan plan = plan_host_reading(*host_, wanted);
  Fetches alone;
  for (const std::size_t i : plan.alone) {
    alone.push_back(due[i]);
  }
  read_shared(plan, due);
  read_files(alone);
}

void CheckpointLoader::read_shared(const HostPlan& plan, const Fetches& due) {
  std::map<std::pair<std::int64_t, std::int64_t>, Fetch*> fetch_of;
  for (Fetch* fetch : due) {
    fetch_of[{fetch->piece.shard, fetch->piece.number}] = fetch;
  }
  const std::vector<ReadingTurn>& turns = plan.turns[static_cast<std::size_t>(host_->rank())];
  for (const ReadingTurn& turn : turns) {
    (void)open_shard(disk_, turn.piece.shard);
  }
  std::vector<std::string> faults(turns.size());  // of reading each turn; set before it is read
  const auto fault_of = [&](const ReadingTurn& turn) -> std::string& {
    return faults[static_cast<std::size_t>(&turn - turns.data())];
  };
  HostReadingHooks hooks;
  hooks.shard_bytes = [&](const Piece& piece) { return shard_of(piece).bytes; };
  hooks.read = [&](const ReadingTurn& turn, std::byte* to) {
    fault_of(turn) = read_turn(turn, to);
  };
  hooks.take = [&](const ReadingTurn& turn, int reader, const std::byte* buffer) {
    Fetch& fetch = *fetch_of.at({turn.piece.shard, turn.piece.number});
    const bool is_own = reader == host_->rank();
    fetch.fault = is_own ? fault_of(turn) : "";
    if (is_own && fetch.fault.empty()) {
      const std::int64_t bytes = bytes_of(shard_of(turn.piece), turn.piece);
      stats_.read_bytes += bytes;
      stats_.bytes[static_cast<std::size_t>(CopyKind::disk)] += bytes;
    }
    take_shared(fetch, reader, buffer);
  };
  read_once(*host_, plan, hooks);
}

// Returns "", or the reason why the turn can't be read; then no wanted block in the buffer has a
// matching digest.
std::string CheckpointLoader::read_turn(const ReadingTurn& turn, std::byte* buffer) const {
  const OpenShard& shard = files_.at({disk_.string(), turn.piece.shard});
  std::string fault = shard.fault.empty() ? "it cannot be opened" : shard.fault;
  try {
    if (shard.reader) {
      parallel_for(io_.threads, kPieceBlocks, [&](std::int64_t i) {
        PieceBlocks block;
        block.set(static_cast<std::size_t>(i));
        read_piece(*shard.reader, turn.piece, buffer, block);
      });
      return "";
    }
  } catch (const Error& e) {
    fault = e.what();
  }
  std::memset(buffer, 0, kPieceBytes);
  return fault;
}

// Takes a piece that this rank or another one of its host has read. The blocks are in their places
// in `buffer`.
void CheckpointLoader::take_shared(Fetch& fetch, int reader, const std::byte* buffer) {
  const Piece& piece = fetch.piece;
  if (reader != host_->rank()) {
    const int sender = host_ranks_[static_cast<std::size_t>(reader)];
    for (std::int64_t i = 0; i < kPieceBlocks && fetch.fault.empty(); ++i) {
      if (piece.blocks.test(static_cast<std::size_t>(i))) {
        fetch.fault =
            transit_fault(fetch, piece.first_block() + i, buffer + i * kDigestBlockBytes, sender);
      }
    }
    stats_.received_bytes += bytes_of(shard_of(piece), piece);
  }
  if (fetch.fault.empty()) {
    take_whole(fetch, buffer);
  }
  if (!fetch.done) {
    note_fault(fetch);
  }
}

}  // namespace trireme
