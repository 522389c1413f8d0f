#include "mpi/shm/reduction.h"

#include <algorithm>

#include "mpi/shm/copy_bytes.h"
#include "mpi/shm/offer_data.h"
#include "mpi/shm/reduce_loops.h"
#include "mpi/shm/staging.h"

namespace trireme {
namespace {

// Parts and pieces are multiples of this: no two ranks write into one cache line.
constexpr std::int64_t kGrainElements = 64;

using Sources = std::vector<const void*>;

struct Range {
  std::int64_t first;
  std::int64_t count;
};

// Rank r's part of `count` elements.
Range part_of(std::int64_t count, int size, int r) {
  const std::int64_t grains = pieces_of(count, kGrainElements);
  const std::int64_t each = pieces_of(grains, size) * kGrainElements;
  const std::int64_t first = std::min(count, each * r);
  return {first, std::min(each, count - first)};
}

std::byte* bytes_at(const View& data, std::int64_t element) {
  return static_cast<std::byte*>(data.data) + element * size_of(data.dtype);
}

struct Reduction {
  ShmGroup& group;
  Exchange& exchange;
  View data;
  ReduceOp op;

  int size() const { return group.size(); }
  int rank() const { return group.rank(); }
  std::int64_t element() const { return size_of(data.dtype); }

  // Everybody's elements from `first` on, as offered.
  Sources offered_from(std::int64_t first) const {
    Sources from;
    for (int r = 0; r < size(); ++r) {
      from.push_back(offered(group, r) + first * element());
    }
    return from;
  }
  void reduce(const Sources& from, std::span<void* const> into, std::int64_t count) const {
    if (count > 0) {
      reduce_tree(from, into, count, data.dtype, op);
    }
  }
  void reduce_into(const Sources& from, void* into, std::int64_t count) const {
    reduce(from, {&into, 1}, count);
  }

  // This rank's own copy is the nearest.
  void from_posts(Range range) const {
    Sources from = offered_from(range.first);
    std::byte* const own = bytes_at(data, range.first);
    from[static_cast<std::size_t>(rank())] = own;
    reduce_into(from, own, range.count);
  }

  void all_in_place() const;
  void block_in_place(Range block) const;
  void all_staged_by_two() const;
  void all_staged() const;
  void block_staged(Range block) const;
};

void Reduction::all_in_place() const {
  {
    const ShmGroup::Touch touch(group);
    const Range part = part_of(data.count, size(), rank());
    std::vector<void*> into;
    for (int r = 0; r < size(); ++r) {
      into.push_back(group.segment(r).at(group.posted(r).source) + part.first * element());
    }
    reduce(offered_from(part.first), into, part.count);
  }
  group.meet(exchange);
}

void Reduction::block_in_place(Range block) const {
  {
    const ShmGroup::Touch touch(group);
    reduce_into(offered_from(block.first), bytes_at(data, block.first), block.count);
  }
  group.meet(exchange);
}

// The peer's pieces are added straight into the buffer.
void Reduction::all_staged_by_two() const {
  const std::int64_t most = kChunkBytes / element();
  const auto piece = [&](std::int64_t c) {
    return Range{c * most, std::min(most, data.count - c * most)};
  };
  stage(
      group, exchange, pieces_of(data.count, most),
      [&](std::int64_t c) {
        copy_bytes(bytes_at(data, piece(c).first),
                   group.inlet(rank(), static_cast<std::uint64_t>(c)), piece(c).count * element());
      },
      [&](std::int64_t c) {
        std::byte* const own = bytes_at(data, piece(c).first);
        const void* const peers = group.inlet(1 - rank(), static_cast<std::uint64_t>(c));
        reduce_into(rank() == 0 ? Sources{own, peers} : Sources{peers, own}, own, piece(c).count);
      });
}

// Three stages in lockstep: put piece c in; reduce this rank's part of piece c-1 into its outlet;
// take the parts of piece c-2 out. Two outlets do, by the argument of staging.h.
void Reduction::all_staged() const {
  const std::int64_t most = kChunkBytes / element();
  const std::int64_t pieces = pieces_of(data.count, most);
  const auto count_of = [&](std::int64_t c) { return std::min(most, data.count - c * most); };
  for (std::int64_t c = 0; c < pieces + 2; ++c) {
    const auto turn = static_cast<std::uint64_t>(c);
    if (c < pieces) {
      copy_bytes(bytes_at(data, c * most), group.inlet(rank(), turn), count_of(c) * element());
    }
    if (c >= 1 && c - 1 < pieces) {
      const Range part = part_of(count_of(c - 1), size(), rank());
      Sources from;
      for (int r = 0; r < size(); ++r) {
        from.push_back(group.inlet(r, turn - 1) + part.first * element());
      }
      reduce_into(from, group.outlet(rank(), turn - 1), part.count);
    }
    for (int r = 0; c >= 2 && r < size(); ++r) {
      const Range part = part_of(count_of(c - 2), size(), r);
      copy_bytes(group.outlet(r, turn - 2), bytes_at(data, (c - 2) * most + part.first),
                 part.count * element());
    }
    if (c <= pieces) {
      group.meet(exchange);
    }
  }
}

// A piece is a strip of every block; strip r of an inlet is for rank r.
void Reduction::block_staged(Range block) const {
  const std::int64_t most = kChunkBytes / size() / (kGrainElements * element()) * kGrainElements;
  const auto count_of = [&](std::int64_t c) { return std::min(most, block.count - c * most); };
  stage(
      group, exchange, pieces_of(block.count, most),
      [&](std::int64_t c) {
        for (int r = 0; r < size(); ++r) {
          if (r != rank()) {
            copy_bytes(bytes_at(data, r * block.count + c * most),
                       group.inlet(rank(), static_cast<std::uint64_t>(c)) + r * most * element(),
                       count_of(c) * element());
          }
        }
      },
      [&](std::int64_t c) {
        std::byte* const own = bytes_at(data, block.first + c * most);
        Sources from;
        for (int r = 0; r < size(); ++r) {
          from.push_back(r == rank() ? own
                                     : group.inlet(r, static_cast<std::uint64_t>(c)) +
                                           rank() * most * element());
        }
        reduce_into(from, own, count_of(c));
      });
}

}  // namespace

void shm_all_reduce(ShmGroup& group, Exchange& exchange, const View& data, ReduceOp op) {
  const Reduction reduction{group, exchange, data, op};
  offer(group, data.data, data.bytes());
  group.post(exchange);
  if (is_small(group, data.bytes())) {
    reduction.from_posts({0, data.count});
  } else if (!any_staged(group)) {
    reduction.all_in_place();
  } else if (group.size() == 2) {
    reduction.all_staged_by_two();
  } else {
    reduction.all_staged();
  }
}

void shm_reduce_scatter(ShmGroup& group, Exchange& exchange, const View& data, ReduceOp op) {
  const Reduction reduction{group, exchange, data, op};
  const std::int64_t count = data.count / group.size();
  const Range own{count * group.rank(), count};
  offer(group, data.data, data.bytes());
  group.post(exchange);
  if (is_small(group, data.bytes())) {
    reduction.from_posts(own);
  } else if (!any_staged(group)) {
    reduction.block_in_place(own);
  } else {
    reduction.block_staged(own);
  }
}

}  // namespace trireme
