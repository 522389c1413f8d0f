// Sorts the rows of a batch by their token ids. Rows of one id stay in ascending order, so that a
// sum over them has one order. Work and memory grow linearly with the rows.
#pragma once

#include <cstdint>

#include "src/device/stream.h"

namespace trireme::cuda {

// A row and its id, counted from the first held one; rows whose ids are not held have the id `held`
// and come last.
struct alignas(8) SortedRow {
  std::uint32_t id;
  std::int32_t row;
};

struct RowIds {
  const std::int32_t* ids;  // [rows], device memory
  std::int64_t rows;        // less than 2^31
  std::int64_t first_id;
  std::int64_t held;  // ids first_id .. first_id + held - 1; less than 2^31
};

// Enqueues the sort and returns the sorted rows, [rows], which lie in the stream's scratch memory.
const SortedRow* sort_rows(Stream& stream, const RowIds& rows);

}  // namespace trireme::cuda
