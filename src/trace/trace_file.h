// The trace of one rank as a file that Perfetto and chrome://tracing load (Trace Event Format,
// "JSON Object Format"): a process a rank, a thread a lane. Times in microseconds since the trace's
// start, by rank 0's clock, with three decimals.
//
//   {"trireme": {schema, id, rank, ranks, host, place, grid, clock, dropped},
//    "traceEvents": [
//      {"ph":"M","name":"thread_name","pid":RANK,"tid":0,"args":{"name":"main"}},
//      {"ph":"X","name":"forward","cat":"compute","pid":RANK,"tid":0,"ts":T,"dur":D,
//       "args":{"number":3,"chunk":0}}, ...        lane 0: spans of the main thread
//      {"ph":"X","name":"all_reduce","cat":"operation","pid":RANK,"tid":1,"ts":T,"dur":D,
//       "args":{"number":7,"bytes":4096,"queued":T}}, ...     a lane for the operations of a group
//    ]}
//
// Pure functions.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/trace/span_log.h"

namespace trireme {

// Along the axes of the grid.
struct TracePlace {
  int dp = 0;
  int tp = 0;
  int pp = 0;
  friend bool operator==(const TracePlace&, const TracePlace&) = default;
};

struct TraceHeader {
  std::int64_t id = 0;  // the same in all files of a trace
  int rank = 0;
  int ranks = 1;
  std::string host;
  TracePlace place;             // of the rank
  TracePlace grid = {1, 1, 1};  // degrees
  // What was added to this rank's clock, how far off that can be, and by how much more it had to be
  // at the trace's end.
  std::int64_t clock_offset_ns = 0;
  std::int64_t clock_uncertainty_ns = 0;
  std::int64_t clock_drift_ns = 0;
  std::int64_t dropped = 0;  // events that did not fit into memory
};

// An operation of one of the rank's groups.
struct TraceOperation {
  std::string_view group;
  std::string_view name;
  std::int64_t number = 0;
  std::int64_t bytes = 0;
  std::int64_t queued_ns = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// Operations of a group that overlap get lanes of their own: those of one lane follow each other.
std::string trace_text(const TraceHeader& header, std::vector<Span> spans,
                       std::vector<TraceOperation> operations);

// What a summary needs of a file.
struct RankTrace {
  RankTrace() = default;
  RankTrace(RankTrace&&) = default;
  RankTrace& operator=(RankTrace&&) = default;

  TraceHeader header;
  std::set<std::string, std::less<>> names;  // what the spans' names point to
  std::vector<Span> spans;                   // of lane 0, by nesting
};

// DataError that names the field, or the event, for what is no such trace. Spans may still overlap.
RankTrace parse_trace(std::string_view text);

}  // namespace trireme
