#include "mpi/shm/movement.h"

#include <algorithm>
#include <numeric>

#include "mpi/shm/copy_bytes.h"
#include "mpi/shm/offer_data.h"
#include "mpi/shm/staging.h"

namespace trireme {
namespace {

// A Parcel is what this rank takes from one peer: a range of the data that the peer has offered.
struct Parcel {
  int from;
  std::int64_t offset;  // bytes, in the peer's data
  std::int64_t bytes;
  std::byte* into;
};

// Describes how data passes through inlets: an inlet holds one strip of `most` bytes per range of
// its owner's data.
struct Strips {
  struct Range {
    const std::byte* data;
    std::int64_t bytes;
  };
  std::vector<Range> ranges;
  std::int64_t most;       // size of a strip in bytes
  std::int64_t pieces;     // the same on all ranks
  std::int64_t own_strip;  // number of the strip in the peers' inlets that is for this rank
};

// Returns the copy function for an operation that reads and writes `bytes` on each rank.
using Copy = void (*)(const void* from, void* to, std::int64_t bytes);
Copy copy_for(const ShmGroup& group, std::int64_t bytes) {
  const bool cached = bytes * group.size() < group.node().cache_bytes() * 3 / 2;
  return cached ? copy_bytes : stream_bytes;
}

void take_offered(ShmGroup& group, const std::vector<Parcel>& parcels, Copy copy) {
  for (const Parcel& parcel : parcels) {
    if (const std::byte* const data = offered(group, parcel.from); data != nullptr) {
      copy(data + parcel.offset, parcel.into, parcel.bytes);
    }
  }
}

void take_staged(ShmGroup& group, Exchange& exchange, const std::vector<Parcel>& parcels,
                 const Strips& strips) {
  const auto length = [&](std::int64_t bytes, std::int64_t c) {
    return std::clamp<std::int64_t>(bytes - c * strips.most, 0, strips.most);
  };
  const bool own_staged = group.posted(group.rank()).source == kStaged;
  const auto put_in = [&](std::int64_t c) {
    std::byte* at = group.inlet(group.rank(), turn_of(c));
    for (std::size_t i = 0; own_staged && i < strips.ranges.size(); ++i, at += strips.most) {
      copy_bytes(strips.ranges[i].data + c * strips.most, at, length(strips.ranges[i].bytes, c));
    }
  };
  const auto take_out = [&](std::int64_t c) {
    for (const Parcel& parcel : parcels) {
      if (offered(group, parcel.from) == nullptr) {
        copy_bytes(group.inlet(parcel.from, turn_of(c)) + strips.own_strip * strips.most,
                   parcel.into + c * strips.most, length(parcel.bytes, c));
      }
    }
  };
  stage(group, exchange, strips.pieces, put_in, take_out);
}

// Takes all parcels and waits until peers have taken theirs. Called after the post.
void take_all(ShmGroup& group, Exchange& exchange, const std::vector<Parcel>& parcels,
              const Strips& strips, Copy copy) {
  if (any_in_place(group)) {
    const ShmGroup::Touch touch(group);
    take_offered(group, parcels, copy);
  } else {
    take_offered(group, parcels, copy);
  }
  if (any_staged(group)) {
    take_staged(group, exchange, parcels, strips);
  }
  if (any_in_place(group)) {
    group.meet(exchange);
  }
}

std::vector<std::int64_t> starts_of(std::span<const std::int64_t> counts, std::int64_t element) {
  std::vector<std::int64_t> starts(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), std::int64_t{0});
  for (std::int64_t& start : starts) {
    start *= element;
  }
  return starts;
}

// Describes the block that this rank sends to itself.
struct Block {
  const std::byte* from;
  std::byte* into;
  std::int64_t bytes;
};
Block own_block(int rank, const AllToAll& blocks) {
  const auto r = static_cast<std::size_t>(rank);
  const std::int64_t element = size_of(blocks.send.dtype);
  return {
      static_cast<const std::byte*>(blocks.send.data) + starts_of(blocks.send_counts, element)[r],
      static_cast<std::byte*>(blocks.recv.data) + starts_of(blocks.recv_counts, element)[r],
      blocks.send_counts[r] * element};
}

// Returns what each rank sends to this one, by the counts that all have published.
std::vector<Parcel> parcels_for(const ShmGroup& group, const AllToAll& blocks) {
  const auto into = starts_of(blocks.recv_counts, size_of(blocks.recv.dtype));
  std::vector<Parcel> parcels;
  for (int step = 1; step < group.size(); ++step) {
    const int r = (group.rank() + step) % group.size();
    const std::int64_t* const given = group.counts(r, group.turn());
    parcels.push_back(
        {r, std::accumulate(given, given + group.rank(), std::int64_t{0}), given[group.rank()],
         static_cast<std::byte*>(blocks.recv.data) + into[static_cast<std::size_t>(r)]});
  }
  return parcels;
}

void check_lengths(const ShmGroup& group, const AllToAll& blocks,
                   const std::vector<Parcel>& parcels) {
  for (const Parcel& parcel : parcels) {
    const std::int64_t expected =
        blocks.recv_counts[static_cast<std::size_t>(parcel.from)] * size_of(blocks.recv.dtype);
    if (parcel.bytes != expected) {
      throw CommError(fmt::format(
          "{} sends {} bytes in an all_to_all where {} expects {}: the ranks run different "
          "operations",
          group.describe(parcel.from), parcel.bytes, group.describe(group.rank()), expected));
    }
  }
}

Strips strips_of(const ShmGroup& group, const AllToAll& blocks) {
  Strips strips{{}, kChunkBytes / group.size() / 64 * 64, 0, group.rank()};
  const auto starts = starts_of(blocks.send_counts, size_of(blocks.send.dtype));
  const std::int64_t* const own = group.counts(group.rank(), group.turn());
  for (int r = 0; r < group.size(); ++r) {
    const auto* const data = static_cast<const std::byte*>(blocks.send.data);
    strips.ranges.push_back(
        {data + starts[static_cast<std::size_t>(r)], r == group.rank() ? 0 : own[r]});
    for (int to = 0; to < group.size() && offered(group, r) == nullptr; ++to) {
      strips.pieces =
          std::max(strips.pieces, pieces_of(group.counts(r, group.turn())[to], strips.most));
    }
  }
  return strips;
}

}  // namespace

void shm_all_gather(ShmGroup& group, Exchange& exchange, const View& data) {
  const std::int64_t bytes = data.bytes() / group.size();
  auto* const all = static_cast<std::byte*>(data.data);
  std::byte* const own = all + group.rank() * bytes;
  offer(group, own, bytes);
  group.post(exchange);
  std::vector<Parcel> parcels;
  for (int step = 1; step < group.size(); ++step) {
    const int r = (group.rank() + step) % group.size();
    parcels.push_back({r, 0, bytes, all + r * bytes});
  }
  take_all(group, exchange, parcels,
           {{{own, bytes}}, kChunkBytes, pieces_of(bytes, kChunkBytes), 0},
           copy_for(group, data.bytes()));
}

void shm_all_to_all(ShmGroup& group, Exchange& exchange, const AllToAll& blocks) {
  const std::int64_t element = size_of(blocks.send.dtype);
  std::int64_t* const given = group.counts(group.rank(), group.next_turn());
  std::transform(blocks.send_counts.begin(), blocks.send_counts.end(), given,
                 [element](std::int64_t n) { return n * element; });
  offer(group, blocks.send.data, blocks.send.bytes());
  group.post(exchange);
  const Copy copy = copy_for(group, blocks.send.bytes() + blocks.recv.bytes());
  const auto parcels = parcels_for(group, blocks);
  check_lengths(group, blocks, parcels);
  const Block own = own_block(group.rank(), blocks);
  copy(own.from, own.into, own.bytes);
  take_all(group, exchange, parcels, strips_of(group, blocks), copy);
}

void shm_broadcast(ShmGroup& group, Exchange& exchange, const View& data, int root) {
  const bool gives = group.rank() == root;
  offer(group, gives ? data.data : nullptr, gives ? data.bytes() : 0);
  group.post(exchange);
  auto* const all = static_cast<std::byte*>(data.data);
  std::vector<Parcel> parcels;
  if (!gives) {
    parcels.push_back({root, 0, data.bytes(), all});
  }
  take_all(group, exchange, parcels,
           {{{all, data.bytes()}}, kChunkBytes, pieces_of(data.bytes(), kChunkBytes), 0},
           copy_for(group, data.bytes()));
}

}  // namespace trireme
