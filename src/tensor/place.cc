#include "src/tensor/place.h"

#include <algorithm>

namespace trireme {

IndexRange share_of(std::int64_t total, int index, int parts) {
  check(0 <= index && index < parts, "a part is one of the parts");
  const std::int64_t small = total / parts;
  const std::int64_t larger = total % parts;  // the first `larger` parts have one element more
  return {index * small + std::min<std::int64_t>(index, larger), small + (index < larger ? 1 : 0)};
}

namespace {

std::int64_t row_count(const Shape& whole) { return whole.rank() == 2 ? whole[0] : 1; }

}  // namespace

Place Place::all(const Shape& whole) { return of_rows(whole, {0, row_count(whole)}); }

Place Place::of_rows(const Shape& whole, IndexRange rows) {
  check(whole.rank() == 1 || whole.rank() == 2, "a parameter is a vector or a matrix");
  check(rows.first >= 0 && rows.end() <= row_count(whole), "held rows lie within the whole");
  return {whole, rows, {{0, whole[whole.rank() - 1]}}, true};
}

Place Place::of_columns(const Shape& whole, std::vector<IndexRange> columns) {
  Place place = all(whole);
  for (const IndexRange& range : columns) {
    check(range.first >= 0 && range.end() <= place.whole_width(), "held columns lie within a row");
  }
  place.columns = std::move(columns);
  return place;
}

std::int64_t Place::width() const {
  std::int64_t width = 0;
  for (const IndexRange& range : columns) {
    width += range.count;
  }
  return width;
}

Shape Place::shape() const {
  return whole.rank() == 2 ? Shape{rows.count, width()} : Shape{width()};
}

namespace {

// Appends the held columns `held` of one held row as runs.
void add_runs(const Place& place, std::int64_t row, IndexRange held, std::vector<HeldRun>& runs) {
  const std::int64_t whole_row = (place.rows.first + row) * place.whole_width();
  std::int64_t at = 0;  // position in the held row of the first column of the range
  for (const IndexRange& range : place.columns) {
    const std::int64_t from = std::max(held.first, at);
    const std::int64_t to = std::min(held.end(), at + range.count);
    if (from < to) {
      runs.push_back({whole_row + range.first + from - at, row * place.width() + from, to - from});
    }
    at += range.count;
  }
}

bool holds_whole_rows(const Place& place) {
  return place.columns.size() == 1 && place.columns[0] == IndexRange{0, place.whole_width()};
}

// Appends the held columns `held` of the held rows `rows` as boxes.
void add_boxes(const Place& place, IndexRange rows, IndexRange held,
               std::vector<HeldBlock>& blocks) {
  std::vector<HeldRun> runs;
  if (rows.count > 0) {
    add_runs(place, rows.first, held, runs);
  }
  for (const HeldRun& run : runs) {
    const std::int64_t column = run.whole_first % place.whole_width();
    const Extent extent =
        place.whole.rank() == 2
            ? Extent::box({place.rows.first + rows.first, column}, {rows.count, run.elements})
            : Extent::box({column}, {run.elements});
    blocks.push_back({extent, run.held_first, place.width()});
  }
}

}  // namespace

std::vector<HeldRun> runs_of(const Place& place, std::int64_t first, std::int64_t count) {
  const std::int64_t width = place.width();
  check(first >= 0 && count >= 0 && first + count <= place.rows.count * width,
        "a range lies within what is held");
  if (holds_whole_rows(place)) {
    return {{place.rows.first * width + first, first, count}};
  }
  std::vector<HeldRun> runs;
  for (std::int64_t at = first; at < first + count;) {
    const std::int64_t column = at % width;
    const std::int64_t n = std::min(width - column, first + count - at);
    add_runs(place, at / width, {column, n}, runs);
    at += n;
  }
  return runs;
}

std::vector<HeldBlock> blocks_of(const Place& place, std::int64_t first, std::int64_t count) {
  const std::int64_t width = place.width();
  check(first >= 0 && count >= 0 && first + count <= place.rows.count * width,
        "a range lies within what is held");
  if (count == 0) {
    return {};
  }
  if (holds_whole_rows(place)) {
    const bool whole = count == place.whole.elements();
    return {
        {whole ? Extent::whole(place.whole) : Extent::flat(place.rows.first * width + first, count),
         first, whole ? width : count}};
  }
  // The range consists of the rest of its first row, complete rows, and the start of its last row.
  std::vector<HeldBlock> blocks;
  const std::int64_t head = std::min((width - first % width) % width, count);
  const std::int64_t full = (count - head) / width;
  const std::int64_t row = (first + head) / width;
  add_boxes(place, {first / width, head > 0 ? 1 : 0}, {first % width, head}, blocks);
  add_boxes(place, {row, full}, {0, width}, blocks);
  const std::int64_t tail = count - head - full * width;
  add_boxes(place, {row + full, tail > 0 ? 1 : 0}, {0, tail}, blocks);
  return blocks;
}

}  // namespace trireme
