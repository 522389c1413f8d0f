// The part of NearestLoader that reads files: of this node's memory, and of the disk.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "io/checkpoint/memory/nearest_loader.h"
#include "io/checkpoint/staging.h"
#include "io/checkpoint/workers.h"

namespace trireme {

// Where no host has several ranks, each reads for itself.
void NearestLoader::join_host() {
  std::map<std::string, std::vector<int>> hosts;
  for (int rank = 0; rank < comm_.size(); ++rank) {
    hosts[comm_.host(rank)].push_back(rank);
  }
  host_ranks_ = hosts.at(comm_.host(comm_.rank()));
  if (step_.disk.empty() || hosts.size() == static_cast<std::size_t>(comm_.size())) {
    return;
  }
  host_ = comm_.split(host_ranks_.front(), comm_.rank(), "host");
  if (host_->size() == 1) {
    host_.reset();
  }
}

// Nothing, and faults_, where it can't be opened.
const ShardReader* NearestLoader::open_shard(const std::filesystem::path& folder,
                                             std::int64_t shard) {
  const auto [reader, is_new] = readers_.try_emplace({folder.string(), shard});
  try {
    if (is_new) {
      reader->second.emplace(folder, manifest_.shards[static_cast<std::size_t>(shard)], io_.direct);
    }
  } catch (const PolicyError& e) {
    refusal_ = e.what();
  } catch (const Error& e) {
    faults_[reader->first] = e.what();
  }
  return reader->second ? &*reader->second : nullptr;
}

// Of files that this rank reads for itself alone, on several threads.
void NearestLoader::read_files(const std::vector<Fetch*>& due) {
  std::vector<const ShardReader*> readers;
  for (Fetch* fetch : due) {
    readers.push_back(open_shard(next_copy(*fetch)->folder, fetch->piece.shard));
  }
  const auto count = static_cast<std::int64_t>(due.size());
  std::atomic<std::int64_t> next = 0;
  parallel_for(io_.threads, std::min<std::int64_t>(io_.threads, count), [&](std::int64_t) {
    const PageBuffer buffer(kPieceBytes);
    for (std::int64_t i = next++; i < count; i = next++) {
      const auto index = static_cast<std::size_t>(i);
      try_near(*due[index], readers[index], buffer.data());
    }
  });
  note(due);
}

void NearestLoader::try_near(Fetch& fetch, const ShardReader* reader, std::byte* buffer) const {
  if (reader == nullptr) {
    const auto fault = faults_.find({next_copy(fetch)->folder.string(), fetch.piece.shard});
    fetch.fault = fault == faults_.end() ? "" : fault->second;
    return;
  }
  try {
    read_piece(*reader, fetch.piece, buffer);
    hand_out(fetch.piece, buffer);
    fetch.done = true;
  } catch (const Error& e) {
    fetch.fault = e.what();
  }
}

// Each piece that is to come from the disk: what another rank of this host wants as well is read by
// one of them.
void NearestLoader::read_disk(std::vector<Fetch>& fetches) {
  std::vector<Fetch*> due;
  std::vector<Piece> wanted;
  for (Fetch& fetch : fetches) {
    const ShardCopy* copy = next_copy(fetch);
    if (copy != nullptr && copy->kind == CopyKind::disk) {
      due.push_back(&fetch);
      wanted.push_back({fetch.piece.shard, fetch.piece.number, fetch.piece.blocks});
    }
  }
  if (host_ == nullptr) {
    read_files(due);
    return;
  }
  const HostPlan plan = plan_host_reading(*host_, wanted);
  std::vector<Fetch*> alone;
  for (const std::size_t i : plan.alone) {
    alone.push_back(due[i]);
  }
  read_shared(plan, due);
  read_files(alone);
}

void NearestLoader::read_shared(const HostPlan& plan, const std::vector<Fetch*>& due) {
  std::map<std::pair<std::int64_t, std::int64_t>, Fetch*> fetch_of;
  for (Fetch* fetch : due) {
    fetch_of[{fetch->piece.shard, fetch->piece.number}] = fetch;
  }
  const std::vector<ReadingTurn>& turns = plan.turns[static_cast<std::size_t>(host_->rank())];
  for (const ReadingTurn& turn : turns) {
    (void)open_shard(step_.disk, turn.piece.shard);
  }
  std::vector<std::string> faults(turns.size());  // of the reading; each set before it is looked at
  const auto fault_of = [&](const ReadingTurn& turn) -> std::string& {
    return faults[static_cast<std::size_t>(&turn - turns.data())];
  };
  HostReadingHooks hooks;
  hooks.shard_bytes = [&](std::int64_t shard) {
    return manifest_.shards[static_cast<std::size_t>(shard)].bytes;
  };
  hooks.read = [&](const ReadingTurn& turn, std::byte* to) {
    fault_of(turn) = read_turn(turn, to);
  };
  hooks.take = [&](const ReadingTurn& turn, int reader, const std::byte* buffer) {
    Fetch& fetch = *fetch_of.at({turn.piece.shard, turn.piece.number});
    const bool is_own = reader == host_->rank();
    fetch.fault = is_own ? fault_of(turn) : "";
    if (is_own && fetch.fault.empty()) {
      const auto& shard = manifest_.shards[static_cast<std::size_t>(turn.piece.shard)];
      const std::int64_t bytes = bytes_of(shard, turn.piece);
      stats_.load.read_bytes += bytes;
      stats_.bytes[static_cast<std::size_t>(CopyKind::disk)] += bytes;
    }
    take_shared(fetch, reader, buffer);
  };
  read_once(*host_, plan, hooks);
}

// "" or why not: then the buffer holds nothing that has a good digest.
std::string NearestLoader::read_turn(const ReadingTurn& turn, std::byte* buffer) const {
  const std::pair key{step_.disk.string(), turn.piece.shard};
  const std::optional<ShardReader>& reader = readers_.at(key);
  std::string fault;
  try {
    if (reader) {
      parallel_for(io_.threads, kPieceBlocks, [&](std::int64_t i) {
        PieceBlocks block;
        block.set(static_cast<std::size_t>(i));
        read_piece(*reader, turn.piece, buffer, block);
      });
      return "";
    }
    const auto why = faults_.find(key);
    fault = why == faults_.end() ? "it cannot be opened" : why->second;
  } catch (const Error& e) {
    fault = e.what();
  }
  std::memset(buffer, 0, kPieceBytes);
  return fault;
}

// A piece in its place, that this rank or another one of its host has read.
void NearestLoader::take_shared(Fetch& fetch, int reader, const std::byte* buffer) {
  const auto& shard = manifest_.shards[static_cast<std::size_t>(fetch.piece.shard)];
  if (reader != host_->rank()) {
    const int sender = host_ranks_[static_cast<std::size_t>(reader)];
    for (std::int64_t i = 0; i < kPieceBlocks && fetch.fault.empty(); ++i) {
      if (fetch.piece.blocks.test(static_cast<std::size_t>(i))) {
        fetch.fault = transit_fault(fetch.piece, fetch.piece.first_block() + i,
                                    buffer + i * kDigestBlockBytes, sender, *next_copy(fetch));
      }
    }
    stats_.load.received_bytes += bytes_of(shard, fetch.piece);
  }
  if (!fetch.fault.empty()) {
    note_fault(fetch);
    return;
  }
  hand_out(fetch.piece, buffer);
  fetch.done = true;
}

}  // namespace trireme
