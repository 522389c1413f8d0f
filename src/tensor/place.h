// Place says which part of a logical tensor a rank holds: some of its rows, and one or more ranges
// of their columns, stored side by side. For example, the packed queries, keys and values of a
// tensor-parallel rank are three ranges. A vector counts as one row. Pure values and functions.
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

// Returns part `index` of `parts` of 0..total-1; sizes differ by at most one.
IndexRange share_of(std::int64_t total, int index, int parts);

struct Place {
  Shape whole;  // rank 1 or 2
  IndexRange rows;
  std::vector<IndexRange> columns;
  // One of the ranks that hold the same elements is primary, and saves them.
  bool primary = true;

  static Place all(const Shape& whole);
  static Place of_rows(const Shape& whole, IndexRange rows);
  static Place of_columns(const Shape& whole, std::vector<IndexRange> columns);

  // Returns the number of columns held.
  std::int64_t width() const;
  std::int64_t whole_width() const { return whole[whole.rank() - 1]; }
  // Returns the shape of the part held: [rows, width], or [width] of a vector.
  Shape shape() const;
  friend bool operator==(const Place&, const Place&) = default;
};

// Held elements [held_first, held_first + elements) are the whole's elements from whole_first on.
struct HeldRun {
  std::int64_t whole_first = 0;
  std::int64_t held_first = 0;
  std::int64_t elements = 0;
};
// Returns the held elements [first, first + count) as runs that are contiguous in the whole, in
// order.
std::vector<HeldRun> runs_of(const Place& place, std::int64_t first, std::int64_t count);

// HeldBlock is a block of the whole whose elements are all held. Its first element is held element
// `first`, and its rows start `pitch` held elements apart.
struct HeldBlock {
  Extent extent;
  std::int64_t first = 0;
  std::int64_t pitch = 0;
};
// Returns the held elements [first, first + count) as few blocks: one flat range if rows are held
// whole, else boxes, at most three per range of columns.
std::vector<HeldBlock> blocks_of(const Place& place, std::int64_t first, std::int64_t count);

}  // namespace trireme
