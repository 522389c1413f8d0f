// The text of nccl-tests, byte by byte where site scripts look: header, rows and footer of its
// table (its src/util.cu). Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/app/bench/collective.h"

namespace trireme {

// What stands above the table.
struct NcclHeader {
  std::string program;  // a line of our own, in the place of the versions of NCCL
  std::string test;     // "all_reduce_perf"
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = 0;
  std::int64_t step = 0;
  bool step_is_factor = false;
  int warmup = 0;
  int iterations = 0;
  int aggregated = 0;
  int checks = 0;
  std::vector<std::string> devices;  // lines of nccl_device_line()
};

std::string nccl_device_line(int rank, int pid, const std::string& host, int local_rank,
                             const std::string& what);
std::string nccl_header(const NcclHeader& header);

// size, count, type, reduction ("none" where there is none) and root (-1).
struct NcclRow {
  CollectiveSize size;
  std::string type;
  std::string reduction;
  int root = -1;
};
std::string nccl_row_start(const NcclRow& row);

// The four columns of a placement; no count of wrong elements prints N/A.
struct NcclCell {
  double microseconds = 0;
  double algbw = 0;  // GB/s
  double busbw = 0;
  std::optional<std::int64_t> wrong;
};
std::string nccl_cell(const NcclCell& cell);

// `errors` counts the placements that had wrong elements.
std::string nccl_footer(std::int64_t errors, double average_busbw, const std::string& test);

// A number in a column: as many decimals as fit, two at most.
std::string nccl_number(double value, int width);

}  // namespace trireme
