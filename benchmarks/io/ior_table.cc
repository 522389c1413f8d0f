#include "benchmarks/io/ior_table.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/core.h>

namespace trireme {
namespace {

constexpr double kMebi = 1 << 20;
constexpr double kKibi = 1 << 10;

// IOR's PPDouble: ten columns and a separator.
std::string cell(double value, const char* after = " ") {
  const int precision = value < 1 ? 6 : value < 3600 ? 2 : 0;
  return fmt::format("{:<10.{}f}{}", value, precision, after);
}

// IOR's HumanReadable: "1 MiB", "1.50 MiB", "512 bytes".
std::string human(std::int64_t bytes) {
  constexpr std::array kUnits = {std::pair{std::int64_t{1} << 40, "TiB"},
                                 std::pair{std::int64_t{1} << 30, "GiB"},
                                 std::pair{std::int64_t{1} << 20, "MiB"}};
  for (const auto& [unit, name] : kUnits) {
    if (bytes >= unit) {
      return bytes % unit == 0
                 ? fmt::format("{} {}", bytes / unit, name)
                 : fmt::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(unit),
                               name);
    }
  }
  return fmt::format("{} bytes", bytes);
}

template <class Value>
std::string option(const char* key, const Value& value) {
  return fmt::format("{:<20}: {}\n", key, value);
}

double operations_per_s(const IorSetup& setup, const IorPhase& phase, double seconds) {
  return static_cast<double>(phase.bytes) / static_cast<double>(setup.layout.transfer_bytes) /
         seconds;
}

// Columns "max min mean deviation " of ten characters.
std::string spread(const std::vector<double>& values, double unit) {
  double sum = 0;
  for (const double value : values) {
    sum += value / unit;
  }
  const double mean = sum / static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) {
    squares += (value / unit - mean) * (value / unit - mean);
  }
  return fmt::format("{:10.2f} {:10.2f} {:10.2f} {:10.2f} ",
                     *std::max_element(values.begin(), values.end()) / unit,
                     *std::min_element(values.begin(), values.end()) / unit, mean,
                     std::sqrt(squares / static_cast<double>(values.size())));
}

std::vector<IorPhase> phases_of(const std::vector<IorPhase>& phases, bool writes) {
  std::vector<IorPhase> own;
  std::copy_if(phases.begin(), phases.end(), std::back_inserter(own),
               [&](const IorPhase& phase) { return phase.writes == writes; });
  return own;
}

// IOR fills in Stonewall(s) and Stonewall(MiB) if ranks go on until all have written as much as the
// fastest (stoneWallingWearOut), and otherwise prints NA there, with -D, too. This benchmark has no
// such wear-out.
std::string summary_row(const IorSetup& setup, const std::vector<IorPhase>& phases) {
  std::vector<double> rates;
  std::vector<double> operations;
  double seconds = 0;
  for (const IorPhase& phase : phases) {
    rates.push_back(phase.rate());
    operations.push_back(operations_per_s(setup, phase, phase.total));
    seconds += phase.total / static_cast<double>(phases.size());
  }
  const IoLayout& layout = setup.layout;
  return fmt::format("{:<9} ", phases.front().writes ? "write" : "read") + spread(rates, kMebi) +
         spread(operations, 1) + fmt::format("{:10.5f} {:>10} {:>13} ", seconds, "NA", "NA") +
         fmt::format("{:5} {:6} {:3} {:4} {:3} {:5} {:8} {:9} {:4} {:6} {:8} {:8} {:9.1f} ", 0,
                     layout.ranks, setup.ranks_per_node, phases.size(),
                     layout.file_per_process ? 1 : 0, setup.shift > 0 ? 1 : 0, setup.task_offset, 0,
                     0, layout.segments, layout.block_bytes, layout.transfer_bytes,
                     static_cast<double>(phases.front().bytes) / kMebi) +
         fmt::format("{:>3} {:6}\n", setup.api, 0);
}

}  // namespace

std::string ior_options(const IorSetup& setup) {
  const IoLayout& layout = setup.layout;
  std::string text =
      "\nOptions: \n" + option("api", setup.api) + option("apiVersion", "") +
      option("test filename", setup.file) +
      option("access", layout.file_per_process ? "file-per-process" : "single-shared-file") +
      option("type", "independent") + option("segments", layout.segments) +
      option("ordering in a file", layout.random ? "random" : "sequential");
  if (setup.shift > 0) {
    text += option("ordering inter file", "constant task offset") +
            option("task offset", setup.task_offset);
  } else {
    text += option("ordering inter file", "no tasks offsets");
  }
  text += option("nodes", setup.nodes) + option("tasks", layout.ranks) +
          option("clients per node", setup.ranks_per_node) +
          (setup.seconds > 0
               ? option("repetitions", fmt::format("as many as fit in {:g} s", setup.seconds))
               : option("repetitions", setup.repetitions)) +
          option("xfersize", human(layout.transfer_bytes)) +
          option("blocksize", human(layout.block_bytes)) +
          option("aggregate filesize", human(layout.total_bytes()));
  if (setup.stonewall_seconds > 0) {
    text += option("stonewallingTime", setup.stonewall_seconds) + option("stoneWallingWearOut", 0);
  }
  return text + "\nResults: \n";
}

std::string ior_header() {
  return "\naccess    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)  "
         " "
         "close(s)   total(s)   iter\n"
         "------    ---------  ----       ----------  ---------- ---------  --------   --------   "
         "--------   --------   ----\n";
}

std::string ior_row(const IorSetup& setup, const IorPhase& phase) {
  return fmt::format("{:<10}", phase.writes ? "write" : "read") + cell(phase.rate() / kMebi) +
         cell(operations_per_s(setup, phase, phase.transfer)) + cell(phase.latency, "  ") +
         cell(static_cast<double>(setup.layout.block_bytes) / kKibi) +
         cell(static_cast<double>(setup.layout.transfer_bytes) / kKibi) + cell(phase.open) +
         cell(phase.transfer) + cell(phase.close) + cell(phase.total) +
         fmt::format("{:<4}\n", phase.repetition);
}

std::string ior_summary(const IorSetup& setup, const std::vector<IorPhase>& phases) {
  std::string maxima;
  std::string rows;
  for (const bool writes : {true, false}) {
    const std::vector<IorPhase> own = phases_of(phases, writes);
    if (own.empty()) {
      continue;
    }
    double most = 0;
    for (const IorPhase& phase : own) {
      most = std::max(most, phase.rate());
    }
    maxima += fmt::format("{}{:.2f} MiB/sec ({:.2f} MB/sec)\n",
                          writes ? "Max Write: " : "Max Read:  ", most / kMebi, most / 1e6);
    rows += summary_row(setup, own);
  }
  return maxima + "\nSummary of all tests:\n" +
         fmt::format(
             "{:<9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} "
             "{:>13}",
             "Operation", "Max(MiB)", "Min(MiB)", "Mean(MiB)", "StdDev", "Max(OPs)", "Min(OPs)",
             "Mean(OPs)", "StdDev", "Mean(s)", "Stonewall(s)", "Stonewall(MiB)") +
         " Test# #Tasks tPN reps fPP reord reordoff reordrand seed segcnt " +
         fmt::format("{:>8} {:>8} {:>9} {:>5} RefNum\n", " blksiz", "xsize", "aggs(MiB)", "API") +
         rows;
}

std::string ior_csv(const IorSetup& setup, const std::vector<IorPhase>& phases) {
  std::string text =
      "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),total(s),"
      "numTasks,iter\n";
  for (const IorPhase& phase : phases) {
    text += phase.writes ? "write" : "read";
    for (const double value : {phase.rate() / kMebi, operations_per_s(setup, phase, phase.transfer),
                               phase.latency, static_cast<double>(setup.layout.block_bytes) / kKibi,
                               static_cast<double>(setup.layout.transfer_bytes) / kKibi, phase.open,
                               phase.transfer, phase.close, phase.total}) {
      text += fmt::format(",{:.4f}", value);
    }
    text += fmt::format(",{},{}\n", setup.layout.ranks, phase.repetition);
  }
  return text;
}

}  // namespace trireme
