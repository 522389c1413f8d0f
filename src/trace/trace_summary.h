// Where the time of a traced step went, by rank and over all ranks:
//
//   t_iter = compute + exposed tp + exposed dp + exposed pp + bubble + data + optimizer + other
//
// A part is the time that the main thread spent in spans of its kind and in no span inside them.
// Waiting for another stage is bubble until that stage has sent what is waited for, and exposed pp
// from then on; in the exchange of losses it is bubble until the last stage of the own pipeline has
// come, and exposed dp (with one replica: pp, tp) from then on. Both need all ranks on one clock.
// Pure functions.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "src/trace/stragglers.h"
#include "src/trace/trace_file.h"

namespace trireme {

enum class StepPart : std::uint8_t { compute, tp, dp, pp, bubble, data, optimizer, other };
inline constexpr std::size_t kStepParts = 8;
// "compute", "exposed tp", ..., "other".
std::string_view name_of(StepPart part);

// Seconds a step.
struct StepTimes {
  double step = 0;  // the step's own span
  std::array<double, kStepParts> parts{};
  // Within `other`.
  double checkpoint = 0;
  double evaluation = 0;

  double& operator[](StepPart part) { return parts[static_cast<std::size_t>(part)]; }
  double operator[](StepPart part) const { return parts[static_cast<std::size_t>(part)]; }
  double sum() const;
};

struct RankSummary {
  TraceHeader header;
  StepTimes mean;              // over the steps
  double compute_seconds = 0;  // median over the steps
  Slowness slowness;           // against the ranks of the same stage
};

struct TraceSummary {
  std::vector<std::int64_t> steps;  // those that every rank has
  std::vector<RankSummary> ranks;
  StepTimes mean;  // over the ranks
};

// traces[r] is rank r's. DataError for spans that overlap, or no step in common.
TraceSummary summarize(const std::vector<RankTrace>& traces);

// The traces of all ranks, from a folder of rank-*.json, or a run's folder. NotFound where there is
// no trace, DataError for a damaged file, or where a rank's is missing or of another trace.
std::vector<RankTrace> read_traces(const std::filesystem::path& folder);

// <folder>/rank-00042.json
std::filesystem::path trace_file(const std::filesystem::path& folder, int rank);

}  // namespace trireme
