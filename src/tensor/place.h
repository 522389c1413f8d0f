// Place: which part of a logical tensor a rank holds: some of its rows, and of these one or several
// ranges of columns, laid side by side (the packed queries, keys and values of a tensor-parallel
// rank are three). A vector counts as one row. Pure values and functions.
//
//   whole [rows, columns]          held, row-major
//   . . . . . . . . . . . .
//   . a a . . b b . . c c .   ->   a a b b c c
//   . a a . . b b . . c c .        a a b b c c
#pragma once

#include <vector>

#include "src/tensor/extent.h"

namespace trireme {

struct IndexRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t end() const { return first + count; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

// Part `index` of `parts` of 0..total-1: sizes differ by one at most.
IndexRange share_of(std::int64_t total, int index, int parts);

struct Place {
  Shape whole;  // rank 1 or 2
  IndexRange rows;
  std::vector<IndexRange> columns;
  // Of several ranks that hold the same elements, one is primary: it saves them.
  bool primary = true;

  static Place all(const Shape& whole);
  static Place of_rows(const Shape& whole, IndexRange rows);
  static Place of_columns(const Shape& whole, std::vector<IndexRange> columns);

  // Of a held row.
  std::int64_t width() const;
  std::int64_t whole_width() const { return whole[whole.rank() - 1]; }
  // Of what is held: [rows, width], or [width] of a vector.
  Shape shape() const;
  friend bool operator==(const Place&, const Place&) = default;
};

// Held elements [held_first, held_first + elements) are the whole's from whole_first on.
struct HeldRun {
  std::int64_t whole_first = 0;
  std::int64_t held_first = 0;
  std::int64_t elements = 0;
};
// The held elements [first, first + count) as runs that are contiguous in the whole, in order.
std::vector<HeldRun> runs_of(const Place& place, std::int64_t first, std::int64_t count);

// A block of the whole whose elements lie among the held ones: its first is held element `first`,
// its rows start `pitch` held elements apart.
struct HeldBlock {
  Extent extent;
  std::int64_t first = 0;
  std::int64_t pitch = 0;
};
// The held elements [first, first + count) as few blocks: one flat range where rows are held whole,
// else boxes: at most three a range of columns.
std::vector<HeldBlock> blocks_of(const Place& place, std::int64_t first, std::int64_t count);

}  // namespace trireme
