#include "src/trace/trace_file.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

// The longest time, about ten days, and the largest offset between two clocks, about three years.
// In nanoseconds both are far below 2^63, and the times below 2^53 are exact in double.
constexpr double kMostMicroseconds = 9e11;
constexpr double kMostOffset = 1e14;
constexpr std::int64_t kMostRanks = 1 << 24;
constexpr std::int64_t kMostSchema = 1;

std::int64_t nanoseconds_field(const nlohmann::json& object, const char* name, double least,
                               double most = kMostMicroseconds) {
  const nlohmann::json& value = field(object, name);
  const double us = value.is_number() ? value.get<double>() : std::nan("");
  if (!(us >= least && us <= most)) {
    throw DataError(
        fmt::format("field '{}' is not a number of microseconds from {} to {}", name, least, most));
  }
  return std::llround(us * 1000);
}

// Returns -1 if the field is absent.
std::int64_t optional_count(const nlohmann::json& object, const char* name, std::int64_t most) {
  return object.contains(name) ? count_field(object, name, 0, most) : -1;
}

TracePlace place_field(const nlohmann::json& object, const char* name, int least) {
  const nlohmann::json& place = object_field(object, name);
  const auto along = [&](const char* axis) {
    return static_cast<int>(count_field(place, axis, least, kMostRanks));
  };
  return {along("dp"), along("tp"), along("pp")};
}

TraceHeader parse_header(const nlohmann::json& json) {
  (void)count_field(json, "schema", 1, kMostSchema);
  TraceHeader h;
  h.id = count_field(json, "id");
  h.ranks = static_cast<int>(count_field(json, "ranks", 1, kMostRanks));
  h.rank = static_cast<int>(count_field(json, "rank", 0, h.ranks - 1));
  h.host = text_field(json, "host");
  h.device = json.contains("device") ? text_field(json, "device") : "";
  h.grid = place_field(json, "grid", 1);
  h.place = place_field(json, "place", 0);
  if (h.place.dp >= h.grid.dp || h.place.tp >= h.grid.tp || h.place.pp >= h.grid.pp) {
    throw DataError("field 'place' lies outside the grid");
  }
  const std::int64_t cells = std::int64_t{h.grid.dp} * h.grid.tp;  // below 2^48
  if (cells > kMostRanks || cells * h.grid.pp != h.ranks) {
    throw DataError(
        fmt::format("field 'grid': dp {} x tp {} x pp {} is not the number of ranks, {}", h.grid.dp,
                    h.grid.tp, h.grid.pp, h.ranks));
  }
  const nlohmann::json& clock = object_field(json, "clock");
  h.clock_offset_ns = nanoseconds_field(clock, "offset_us", -kMostOffset, kMostOffset);
  h.clock_uncertainty_ns = nanoseconds_field(clock, "uncertainty_us", 0, kMostOffset);
  h.clock_drift_ns = nanoseconds_field(clock, "drift_us", -kMostOffset, kMostOffset);
  h.dropped = count_field(json, "dropped");
  return h;
}

Span parse_span(const nlohmann::json& event, RankTrace& trace) {
  Span span;
  const std::string& kind = text_field(event, "cat");
  const auto parsed = parse_span_kind(kind);
  if (!parsed) {
    throw DataError(fmt::format("field 'cat': unknown span kind '{}'", kind.substr(0, 40)));
  }
  span.kind = *parsed;
  span.name = *trace.names.insert(text_field(event, "name")).first;
  span.start_ns = nanoseconds_field(event, "ts", -kMostMicroseconds);
  span.end_ns = span.start_ns + nanoseconds_field(event, "dur", 0);
  const nlohmann::json& args = object_field(event, "args");
  span.detail.number = optional_count(args, "number", kMostCount);
  span.detail.chunk = static_cast<int>(optional_count(args, "chunk", kMostRanks));
  span.detail.stage = static_cast<int>(optional_count(args, "stage", kMostRanks));
  return span;
}

void parse_event(const nlohmann::json& event, RankTrace& trace) {
  const std::string& phase = text_field(event, "ph");
  if (count_field(event, "pid") != trace.header.rank) {
    throw DataError(fmt::format("field 'pid' is not rank {}", trace.header.rank));
  }
  const std::int64_t lane = count_field(event, "tid", 0, kMostCount);
  if (phase == "X" && lane == 0) {
    trace.spans.push_back(parse_span(event, trace));
  } else if (phase != "X" && phase != "M") {
    throw DataError("field 'ph' is not X or M");
  }
}

}  // namespace

RankTrace parse_trace(std::string_view text) {
  const nlohmann::json json = parse_json(text);
  RankTrace trace;
  trace.header = parse_header(object_field(json, "trireme"));
  std::size_t number = 0;
  for (const nlohmann::json& event : array_field(json, "traceEvents")) {
    try {
      parse_event(event, trace);
    } catch (const DataError& error) {
      throw DataError(fmt::format("event {}: {}", number, error.what()));
    }
    ++number;
  }
  sort_by_nesting(trace.spans);
  return trace;
}

}  // namespace trireme
