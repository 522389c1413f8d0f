// Converts the trace of one rank to and from the text of a file that Perfetto and chrome://tracing
// load (Trace Event Format, "JSON Object Format"). A rank is shown as a process and a lane as a
// thread. Times are microseconds since the trace's start by rank 0's clock, with three decimals.
//
//   {"trireme": {schema, id, rank, ranks, host, device, place, grid, clock, dropped},
//    "traceEvents": [
//      {"ph":"M","name":"thread_name","pid":RANK,"tid":0,"args":{"name":"main"}},
//      {"ph":"X","name":"forward","cat":"compute","pid":RANK,"tid":0,"ts":T,"dur":D,
//       "args":{"number":3,"chunk":0}}, ...        lane 0: spans of the main thread
//      {"ph":"X","name":"all_reduce","cat":"operation","pid":RANK,"tid":1,"ts":T,"dur":D,
//       "args":{"number":7,"bytes":4096,"queued":T}}, ...     further lanes: operations, by group
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

// A TracePlace is a position in the grid, or its size, along each axis.
struct TracePlace {
  int dp = 0;
  int tp = 0;
  int pp = 0;
  friend bool operator==(const TracePlace&, const TracePlace&) = default;
};

struct TraceHeader {
  std::int64_t id = 0;  // equal in all files of one trace
  int rank = 0;
  int ranks = 1;
  std::string host;
  std::string device;           // what computed, such as "cpu"; empty in older files
  TracePlace place;             // of the rank
  TracePlace grid = {1, 1, 1};  // the degrees
  // The three numbers are what was added to this rank's clock, the error bound of that, and by how
  // much more the clock was off at the end of the trace.
  std::int64_t clock_offset_ns = 0;
  std::int64_t clock_uncertainty_ns = 0;
  std::int64_t clock_drift_ns = 0;
  std::int64_t dropped = 0;  // events that did not fit into memory
};

// Describes an operation in one of the rank's groups.
struct TraceOperation {
  std::string_view group;
  std::string_view name;
  std::int64_t number = 0;
  std::int64_t bytes = 0;
  std::int64_t queued_ns = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

// Returns the file's text. Overlapping operations of a group go to different lanes, so that those
// in one lane do not overlap.
std::string trace_text(const TraceHeader& header, std::vector<Span> spans,
                       std::vector<TraceOperation> operations);

// Holds the part of a file that a summary needs.
struct RankTrace {
  RankTrace() = default;
  RankTrace(RankTrace&&) = default;
  RankTrace& operator=(RankTrace&&) = default;

  TraceHeader header;
  std::set<std::string, std::less<>> names;  // owns the names of the spans
  std::vector<Span> spans;                   // spans of lane 0, sorted by nesting
};

// Throws DataError that names the field or event if the text is not a trace. Does not check for
// overlapping spans.
RankTrace parse_trace(std::string_view text);

}  // namespace trireme
