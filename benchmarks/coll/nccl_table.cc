#include "benchmarks/coll/nccl_table.h"

#include <cmath>

#include <fmt/printf.h>

namespace trireme {

std::string nccl_number(double value, int width) {
  int digits = 0;  // digits before the decimal point
  for (double power = 1; digits < 20 && value >= power; power *= 10) {
    ++digits;
  }
  if (digits < width - 2) {
    return fmt::format("{:{}.2f}", value, width);
  }
  if (digits < width - 1) {
    return fmt::format("{:{}.1f}", value, width);
  }
  if (digits < width + 1) {
    return fmt::format("{:{}.0f}", value, width);
  }
  return fmt::format("{:{}.{}e}", value, width, width >= 7 ? 1 : 0);
}

std::string nccl_device_line(int rank, int pid, const std::string& host, int local_rank,
                             const std::string& what) {
  return fmt::sprintf("#  Rank %2d Group %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %s\n",
                      rank, 0, pid, host, local_rank, 0, 0, 0, what);
}

std::string nccl_header(const NcclHeader& header) {
  std::string text =
      fmt::format("# {}\n# Collective test starting: {}\n", header.program, header.test);
  text += fmt::format(
      "# nThread 1 nGpus 1 minBytes {} maxBytes {} step: {}({}) warmup iters: {} iters: {} agg "
      "iters: {} validation: {} graph: 0 unalign: 0\n#\n# Using devices\n",
      header.min_bytes, header.max_bytes, header.step, header.step_is_factor ? "factor" : "bytes",
      header.warmup, header.iterations, header.aggregated, header.checks);
  for (const std::string& line : header.devices) {
    text += line;
  }
  const auto titles = [](const std::string& size, const std::string& count, const std::string& type,
                         const std::string& redop, const std::string& root) {
    return fmt::sprintf("# %10s  %12s  %8s  %6s  %6s", size, count, type, redop, root);
  };
  const auto columns = [](const std::string& time, const std::string& rate, const std::string& bus,
                          const std::string& wrong) {
    return fmt::sprintf("  %7s  %6s  %6s  %6s", time, rate, bus, wrong);
  };
  const std::string names = columns("time", "algbw", "busbw", "#wrong");
  const std::string units = columns("(us)", "(GB/s)", "(GB/s)", "");
  text += "#\n" + titles("", "", "", "", "") +
          "           out-of-place                       in-place          \n";
  text += titles("size", "count", "type", "redop", "root") + names + names + " \n";
  text += titles("(B)", "(elements)", "", "", "") + units + units + " \n";
  return text;
}

std::string nccl_row_start(const NcclRow& row) {
  return fmt::sprintf("%12d  %12d  %8s  %6s  %6d", row.size.bytes, row.size.count, row.type,
                      row.reduction, row.root);
}

std::string nccl_cell(const NcclCell& cell) {
  const std::string rates = "  " + nccl_number(cell.microseconds, 7) + "  " +
                            nccl_number(cell.algbw, 6) + "  " + nccl_number(cell.busbw, 6);
  return rates + (cell.wrong ? fmt::sprintf("  %6g", static_cast<double>(*cell.wrong)) : "    N/A");
}

std::string nccl_footer(std::int64_t errors, double average_busbw, const std::string& test) {
  return fmt::sprintf("# %-20s : %d %s\n", "Out of bounds values", errors,
                      errors > 0 ? "FAILED" : "OK") +
         fmt::sprintf("# %-20s : %g \n", "Avg bus bandwidth", average_busbw) +
         fmt::format("#\n# Collective test concluded: {}\n#\n", test);
}

}  // namespace trireme
