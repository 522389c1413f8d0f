#include "mpi/shm/reduction.h"

#include <algorithm>

#include "mpi/shm/copy_bytes.h"
#include "mpi/shm/offer_data.h"
#include "mpi/shm/reduce_loops.h"
#include "mpi/shm/staging.h"

namespace trireme {
namespace {

// Parts and pieces are multiples of this many elements, so that no two ranks write to the same
// cache line.
constexpr std::int64_t kGrainElements = 64;

struct Range {
  std::int64_t first;
  std::int64_t count;
};

// Returns rank r's part of `count` elements.
Range part_of(std::int64_t count, int size, int r) {
  const std::int64_t grains = pieces_of(count, kGrainElements);
  const std::int64_t each = pieces_of(grains, size) * kGrainElements;
  const std::int64_t first = std::min(count, each * r);
  return {first, std::min(each, count - first)};
}

std::byte* bytes_at(const View& data, std::int64_t element) {
  return static_cast<std::byte*>(data.data) + element * size_of(data.dtype);
}
const std::byte* bytes_at(const ConstView& data, std::int64_t element) {
  return static_cast<const std::byte*>(data.data) + element * size_of(data.dtype);
}

struct Reduction {
  ShmGroup& group;
  Addresses& addresses;
  Exchange& exchange;
  ConstView from;
  View into;  // the same memory as `from` if the operation is in place
  ReduceOp op;

  int size() const { return group.size(); }
  int rank() const { return group.rank(); }
  std::int64_t element() const { return size_of(into.dtype); }

  // Reduces into one destination from the source at(r) of each rank r.
  template <class At>
  void reduce(At at, void* to, std::int64_t count) const {
    addresses.into.assign(1, to);
    reduce_to(at, count);
  }
  template <class At>
  void reduce_to(At at, std::int64_t count) const {
    addresses.from.resize(static_cast<std::size_t>(size()));
    for (int r = 0; r < size(); ++r) {
      addresses.from[static_cast<std::size_t>(r)] = at(r);
    }
    if (count > 0) {
      reduce_tree(addresses.from, addresses.into, count, into.dtype, op);
    }
  }

  bool bypasses_caches() const;
  void from_posts(Range range) const;
  void all_in_arena() const;
  void block_in_place(Range block) const;
  void all_staged_by_two() const;
  void all_staged() const;
  void block_staged(Range block) const;
};

// Returns whether results bypass the caches. An ordinary store reads its line from memory before it
// writes it, unless the line is in the cache, as it is for an operation in place. If the sources
// and destinations of all ranks take more than an eighth of the last-level cache, most lines are
// not in it, and stores that bypass the caches are up to 1.6 times as fast (docs/performance.md).
bool Reduction::bypasses_caches() const {
  return from.data != into.data && 2 * into.bytes() * size() > group.node().cache_bytes() / 8;
}

// Reads this rank's own data from its buffer, which is nearer than the copy in its post.
void Reduction::from_posts(Range range) const {
  const std::byte* const own = bytes_at(from, range.first);
  reduce([&](int r) { return r == rank() ? own : offered(group, r) + range.first * element(); },
         bytes_at(into, range.first), range.count);
}

void Reduction::all_in_arena() const {
  {
    const ShmGroup::Touch touch(group);
    const Range part = part_of(into.count, size(), rank());
    addresses.from.clear();
    addresses.into.clear();
    for (int r = 0; r < size(); ++r) {
      addresses.from.push_back(offered(group, r) + part.first * element());
      addresses.into.push_back(wanted(group, r) + part.first * element());
    }
    const auto reduce_part = bypasses_caches() ? reduce_tree_bypassing_caches : reduce_tree;
    reduce_part(addresses.from, addresses.into, part.count, into.dtype, op);
  }
  group.meet(exchange);
}

void Reduction::block_in_place(Range block) const {
  {
    const ShmGroup::Touch touch(group);
    reduce([&](int r) { return offered(group, r) + block.first * element(); },
           bytes_at(into, block.first), block.count);
  }
  group.meet(exchange);
}

// Adds the peer's pieces directly into the buffer.
void Reduction::all_staged_by_two() const {
  const std::int64_t most = kChunkBytes / element();
  const auto piece = [&](std::int64_t c) {
    return Range{c * most, std::min(most, into.count - c * most)};
  };
  const auto put_in = [&](std::int64_t c) {
    copy_bytes(bytes_at(from, piece(c).first), group.inlet(rank(), turn_of(c)),
               piece(c).count * element());
  };
  const auto take_out = [&](std::int64_t c) {
    const std::byte* const own = bytes_at(from, piece(c).first);
    reduce([&](int r) { return r == rank() ? own : group.inlet(r, turn_of(c)); },
           bytes_at(into, piece(c).first), piece(c).count);
  };
  stage(group, exchange, pieces_of(into.count, most), put_in, take_out);
}

// Works in three stages in lockstep: each rank puts piece c into its inlet, reduces its part of
// piece c-1 into its outlet, and takes all parts of piece c-2 out of the outlets. Two outlets are
// enough for the reason given in staging.h.
void Reduction::all_staged() const {
  const std::int64_t most = kChunkBytes / element();
  const std::int64_t pieces = pieces_of(into.count, most);
  const auto count_of = [&](std::int64_t c) { return std::min(most, into.count - c * most); };
  const auto put_in = [&](std::int64_t c) {
    copy_bytes(bytes_at(from, c * most), group.inlet(rank(), turn_of(c)), count_of(c) * element());
  };
  const auto reduce_part = [&](std::int64_t c) {
    const Range part = part_of(count_of(c), size(), rank());
    reduce([&](int r) { return group.inlet(r, turn_of(c)) + part.first * element(); },
           group.outlet(rank(), turn_of(c)), part.count);
  };
  const auto take_out = [&](std::int64_t c) {
    for (int r = 0; r < size(); ++r) {
      const Range part = part_of(count_of(c), size(), r);
      copy_bytes(group.outlet(r, turn_of(c)), bytes_at(into, c * most + part.first),
                 part.count * element());
    }
  };
  for (std::int64_t c = 0; c < pieces + 2; ++c) {
    if (c < pieces) {
      put_in(c);
    }
    if (c >= 1 && c - 1 < pieces) {
      reduce_part(c - 1);
    }
    if (c >= 2) {
      take_out(c - 2);
    }
    if (c <= pieces) {
      group.meet(exchange);
    }
  }
}

// A piece consists of a strip of every block; strip r of an inlet is for rank r.
void Reduction::block_staged(Range block) const {
  const std::int64_t most = kChunkBytes / size() / (kGrainElements * element()) * kGrainElements;
  const auto count_of = [&](std::int64_t c) { return std::min(most, block.count - c * most); };
  const auto put_in = [&](std::int64_t c) {
    for (int r = 0; r < size(); ++r) {
      if (r != rank()) {
        copy_bytes(bytes_at(from, r * block.count + c * most),
                   group.inlet(rank(), turn_of(c)) + r * most * element(), count_of(c) * element());
      }
    }
  };
  const auto take_out = [&](std::int64_t c) {
    std::byte* const own = bytes_at(into, block.first + c * most);
    const std::int64_t strip = rank() * most * element();
    reduce([&](int r) { return r == rank() ? own : group.inlet(r, turn_of(c)) + strip; }, own,
           count_of(c));
  };
  stage(group, exchange, pieces_of(block.count, most), put_in, take_out);
}

}  // namespace

void shm_all_reduce(ShmGroup& group, Addresses& addresses, Exchange& exchange,
                    const ConstView& from, const View& into, ReduceOp op) {
  const Reduction reduction{group, addresses, exchange, from, into, op};
  offer_both(group, from.data, into.data, into.bytes());
  group.post(exchange);
  if (all_with_posts(group)) {
    reduction.from_posts({0, into.count});
  } else if (all_in_place(group)) {
    reduction.all_in_arena();
  } else if (group.size() == 2) {
    reduction.all_staged_by_two();
  } else {
    reduction.all_staged();
  }
}

void shm_reduce_scatter(ShmGroup& group, Addresses& addresses, Exchange& exchange, const View& data,
                        ReduceOp op) {
  const Reduction reduction{group, addresses, exchange, data, data, op};
  const std::int64_t count = data.count / group.size();
  const Range own{count * group.rank(), count};
  offer(group, data.data, data.bytes());
  group.post(exchange);
  if (all_with_posts(group)) {
    reduction.from_posts(own);
  } else if (all_in_place(group)) {
    reduction.block_in_place(own);
  } else {
    reduction.block_staged(own);
  }
}

}  // namespace trireme
