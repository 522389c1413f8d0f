// Summarizes where the time of traced steps went, per rank and over all ranks:
//
//   t_iter = compute + exposed tp + exposed dp + exposed pp + bubble + data + optimizer + other
//
// A part is the time that the main thread spent in spans of its kind and in no span within them.
// Waiting for another stage counts as bubble until that stage has sent the tensor, and as exposed
// pp from then on. In the exchange of losses, waiting counts as bubble until the last stage of the
// rank's own pipeline has arrived, and as exposed dp (with one replica: pp or tp) from then on.
// Both need all ranks' times on one clock. Pure functions.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/run_text.h"
#include "src/trace/stragglers.h"
#include "src/trace/trace_file.h"

namespace trireme {

enum class StepPart : std::uint8_t { compute, tp, dp, pp, bubble, data, optimizer, other };
inline constexpr std::size_t kStepParts = 8;
// Returns "compute", "exposed tp", ..., "other".
std::string_view name_of(StepPart part);

// Holds the times of a step, in seconds.
struct StepTimes {
  double step = 0;  // duration of the step's own span
  std::array<double, kStepParts> parts{};
  // Checkpoint and evaluation are included in `other`.
  double checkpoint = 0;
  double evaluation = 0;

  double& operator[](StepPart part) { return parts[static_cast<std::size_t>(part)]; }
  double operator[](StepPart part) const { return parts[static_cast<std::size_t>(part)]; }
  double sum() const;
};

struct RankSummary {
  TraceHeader header;
  StepTimes mean;              // mean over the steps
  double compute_seconds = 0;  // median over the steps
  Slowness slowness;           // compared with the ranks of the same stage
};

struct TraceSummary {
  std::vector<std::int64_t> steps;  // the steps that every rank has
  std::vector<RankSummary> ranks;
  StepTimes mean;  // mean over the ranks
};

// traces[r] belongs to rank r. Throws DataError if spans overlap or no step is common to all ranks.
TraceSummary summarize(const std::vector<RankTrace>& traces);

// Reads the traces of all ranks from a folder of rank-*.json or from a run's folder. Throws
// NotFound if there is no trace, and DataError if a file is damaged, missing or of another trace.
std::vector<RankTrace> read_traces(const std::filesystem::path& folder,
                                   const TextReader& reader = plain_reader());

// Returns <folder>/rank-00042.json.
std::filesystem::path trace_file(const std::filesystem::path& folder, int rank);

}  // namespace trireme
