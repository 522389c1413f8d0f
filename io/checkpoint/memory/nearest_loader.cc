#include "io/checkpoint/memory/nearest_loader.h"

#include <algorithm>
#include <cstring>

#include <fmt/ranges.h>

#include "io/checkpoint/staging.h"
#include "mpi/agreement.h"
#include "src/base/digest.h"
#include "src/base/fault.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace {

constexpr std::size_t kMostRepairsTold = 4;

bool is_near(CopyKind kind) { return kind == CopyKind::own || kind == CopyKind::partner; }

bool is_far(CopyKind kind) {
  return kind == CopyKind::other_own || kind == CopyKind::other_partner;
}

}  // namespace

std::string_view copy_kind_text(CopyKind kind) {
  constexpr std::array<std::string_view, kCopyKinds> kTexts = {
      "this node's memory", "a partner's copy on this node", "other nodes' memory",
      "copies on other nodes", "disk"};
  return kTexts[static_cast<std::size_t>(kind)];
}

NearestLoader::NearestLoader(Communicator& comm, const NodeMap& nodes, const Inventory& inventory,
                             const StepCandidate& step, const Manifest& manifest, const ShardIo& io)
    : comm_(comm), nodes_(nodes), inventory_(inventory), step_(step), manifest_(manifest), io_(io) {
  find_copies();
  join_host();
}

void NearestLoader::find_copies() {
  copies_.resize(manifest_.shards.size());
  const int own =
      nodes_.node_of.empty() ? -1 : nodes_.node_of[static_cast<std::size_t>(comm_.rank())];
  const auto nodes = static_cast<int>(nodes_.ranks.size());
  for (int distance = 0; distance < nodes; ++distance) {
    const int node = (std::max(own, 0) + distance) % nodes;
    for (const StepPlace& place : step_.places) {
      if (place.node == static_cast<std::size_t>(node)) {
        add_copies(place, node == own);
      }
    }
  }
  for (std::size_t shard = 0; shard < copies_.size(); ++shard) {
    if (!step_.disk.empty()) {
      copies_[shard].push_back({CopyKind::disk, step_.disk, 0, 0});
    }
    std::stable_sort(copies_[shard].begin(), copies_[shard].end(),
                     [](const ShardCopy& a, const ShardCopy& b) { return a.kind < b.kind; });
  }
}

void NearestLoader::add_copies(const StepPlace& place, bool is_near) {
  const InventoryEntry& entry = inventory_.nodes()[place.node].entries[place.entry];
  const std::vector<int>& ranks = nodes_.ranks[place.node];
  const CopyKind near = entry.is_partner ? CopyKind::partner : CopyKind::own;
  const CopyKind far = entry.is_partner ? CopyKind::other_partner : CopyKind::other_own;
  for (const std::int64_t shard : entry.shards) {
    const auto index = static_cast<std::size_t>(shard);
    check(index < copies_.size(), "an inventory's shard is in the manifest");
    // The node's ranks share the serving.
    copies_[index].push_back({is_near ? near : far, entry.path, ranks[index % ranks.size()],
                              static_cast<std::int64_t>(place.entry)});
  }
}

std::string NearestLoader::missing() const {
  std::vector<std::string> names;
  for (std::size_t shard = 0; shard < copies_.size(); ++shard) {
    if (copies_[shard].empty()) {
      names.push_back(manifest_.shards[shard].file);
    }
  }
  if (names.empty()) {
    return "";
  }
  return fmt::format(
      "{} of {} shards can be found neither in the memory of a node nor on disk: {}{}",
      names.size(), copies_.size(), names.front(), names.size() > 1 ? ", ..." : "");
}

const ShardCopy* NearestLoader::next_copy(const Fetch& fetch) const {
  const auto& copies = copies_[static_cast<std::size_t>(fetch.piece.shard)];
  return !fetch.done && fetch.copy < copies.size() ? &copies[fetch.copy] : nullptr;
}

std::string NearestLoader::load(std::span<const TensorBlock> blocks) {
  const Stopwatch watch;
  std::vector<Fetch> fetches;
  for (Piece& piece : plan_read(manifest_, blocks)) {
    fetches.push_back({std::move(piece), 0, false, ""});
  }
  for (const TensorBlock& block : blocks) {
    stats_.load.wanted_bytes += block.bytes();
  }
  while (true) {
    read_near(fetches);
    read_far(fetches);
    read_disk(fetches);
    std::int64_t left = 0;
    std::string lost;
    for (const Fetch& fetch : fetches) {
      left += next_copy(fetch) != nullptr ? 1 : 0;
      lost = fetch.done || next_copy(fetch) != nullptr ? lost : fetch.fault;
    }
    if (const std::string refused = gather_faults(comm_, refusal_); !refused.empty()) {
      throw PolicyError(refused);
    }
    if (const std::string faults = gather_faults(comm_, lost); !faults.empty()) {
      return faults;
    }
    if (all_reduce_value(comm_, left, ReduceOp::sum) == 0) {
      stats_.load.seconds = watch.seconds();
      return "";
    }
  }
}

// Each piece whose next copy is in this node's memory.
void NearestLoader::read_near(std::vector<Fetch>& fetches) {
  std::vector<Fetch*> due;
  for (Fetch& fetch : fetches) {
    const ShardCopy* copy = next_copy(fetch);
    if (copy != nullptr && is_near(copy->kind)) {
      due.push_back(&fetch);
    }
  }
  read_files(due);
}

// Counts what came, and moves the pieces that did not on to their next copy.
void NearestLoader::note(const std::vector<Fetch*>& tried) {
  for (Fetch* fetch : tried) {
    const auto shard = static_cast<std::size_t>(fetch->piece.shard);
    if (!fetch->done) {
      note_fault(*fetch);
      continue;
    }
    const std::int64_t bytes = bytes_of(manifest_.shards[shard], fetch->piece);
    stats_.bytes[static_cast<std::size_t>(copies_[shard][fetch->copy].kind)] += bytes;
    stats_.load.read_bytes += bytes;
  }
}

void NearestLoader::note_fault(Fetch& fetch) {
  const auto shard = static_cast<std::size_t>(fetch.piece.shard);
  if (fetch.fault.empty()) {
    fetch.fault = fmt::format("{} cannot be opened in {}", manifest_.shards[shard].file,
                              copy_kind_text(copies_[shard][fetch.copy].kind));
  }
  if (stats_.repairs.size() < kMostRepairsTold) {
    stats_.repairs.push_back(fetch.fault);
  }
  ++fetch.copy;
}

// Each piece whose next copy lies on another node.
void NearestLoader::read_far(std::vector<Fetch>& fetches) {
  std::vector<Fetch*> due;
  std::vector<PieceRequest> requests;
  for (Fetch& fetch : fetches) {
    const ShardCopy* copy = next_copy(fetch);
    if (copy != nullptr && is_far(copy->kind)) {
      due.push_back(&fetch);
      const Piece& piece = fetch.piece;
      requests.push_back({copy->rank, copy->entry, {piece.shard, piece.number, piece.blocks}});
    }
  }
  const auto any = static_cast<std::int64_t>(due.size());
  if (all_reduce_value(comm_, any, ReduceOp::max) == 0) {
    return;
  }
  ExchangeHooks hooks;
  hooks.bytes = [&](const PieceRequest& r) {
    return bytes_of(manifest_.shards[static_cast<std::size_t>(r.piece.shard)], r.piece);
  };
  hooks.serve = [&](const PieceRequest& r, std::byte* buffer) { serve(r, buffer); };
  hooks.take = [&](std::size_t i, std::byte* buffer) { take(*due[i], buffer); };
  exchange_pieces(comm_, requests, hooks);
  note(due);
}

// What can't be read is sent as zeros: their digest tells.
void NearestLoader::serve(const PieceRequest& request, std::byte* buffer) const {
  const Piece& piece = request.piece;
  const StoredShard& shard = manifest_.shards[static_cast<std::size_t>(piece.shard)];
  const int node = nodes_.node_of[static_cast<std::size_t>(comm_.rank())];
  const NodeInventory& inventory = inventory_.nodes()[static_cast<std::size_t>(node)];
  const InventoryEntry& entry = inventory.entries[static_cast<std::size_t>(request.entry)];
  const std::int64_t bytes = bytes_of(shard, piece);
  std::byte* at = buffer;
  try {
    const ShardReader reader(entry.path, shard, false);
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

// "" or what is wrong with a block that another rank has sent.
std::string NearestLoader::transit_fault(const Piece& piece, std::int64_t block,
                                         const std::byte* at, int sender,
                                         const ShardCopy& copy) const {
  const StoredShard& shard = manifest_.shards[static_cast<std::size_t>(piece.shard)];
  if (xxh3(at, digest_block_bytes(shard, block)) ==
      shard.block_digests[static_cast<std::size_t>(block)]) {
    return "";
  }
  return fmt::format(
      "{} in {}: block {} of {}, as received from rank {} (host {}), does not have the digest in "
      "the manifest: it was damaged there or on the way",
      copy.folder.string(), copy_kind_text(copy.kind), block, shard.file, sender,
      comm_.host(sender));
}

// The blocks lie one behind the other: each moves to its place, the last one first.
void NearestLoader::take(Fetch& fetch, std::byte* buffer) const {
  const StoredShard& shard = manifest_.shards[static_cast<std::size_t>(fetch.piece.shard)];
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
    const ShardCopy& copy = *next_copy(fetch);
    fetch.fault = transit_fault(fetch.piece, block, at, copy.rank, copy);
    if (!fetch.fault.empty()) {
      return;
    }
  }
  hand_out(fetch.piece, buffer);
  fetch.done = true;
}

}  // namespace trireme
