// Formats the table of nccl-tests with the same header, rows and footer (its src/util.cu), byte for
// byte where site scripts parse it. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "benchmarks/coll/collective.h"

namespace trireme {

// NcclHeader holds the text above the table.
struct NcclHeader {
  std::string program;  // a line of our own in place of NCCL's versions
  std::string test;     // such as "all_reduce_perf"
  std::int64_t min_bytes = 0;
  std::int64_t max_bytes = 0;
  std::int64_t step = 0;
  bool step_is_factor = false;
  int warmup = 0;
  int iterations = 0;
  int aggregated = 0;
  int checks = 0;
  std::vector<std::string> devices;  // lines made by nccl_device_line()
};

std::string nccl_device_line(int rank, int pid, const std::string& host, int local_rank,
                             const std::string& what);
std::string nccl_header(const NcclHeader& header);

// NcclRow holds the columns size, count, type, reduction ("none" if not applicable) and root (-1).
struct NcclRow {
  CollectiveSize size;
  std::string type;
  std::string reduction;
  int root = -1;
};
std::string nccl_row_start(const NcclRow& row);

// NcclCell holds the four columns of one placement. Without a count of wrong elements, "N/A" is
// printed.
struct NcclCell {
  double microseconds = 0;
  double algbw = 0;  // GB/s, like busbw
  double busbw = 0;
  std::optional<std::int64_t> wrong;
};
std::string nccl_cell(const NcclCell& cell);

// errors: number of placements with wrong elements.
std::string nccl_footer(std::int64_t errors, double average_busbw, const std::string& test);

// Formats a number for a column with as many decimals as fit, but at most two.
std::string nccl_number(double value, int width);

}  // namespace trireme
