// A trace of two pipeline stages by hand: one step of 100 us, from 1000 us on.
//
//   stage 0  | 20 forward | send | ........ wait 40, sent after 25 ........ | 20 backward | meet |
#pragma once

#include <string>
#include <vector>

#include "src/trace/trace_file.h"

namespace trireme {

inline constexpr std::int64_t kMicro = 1000;

inline Span span_at(SpanKind kind, std::string_view name, std::int64_t start, std::int64_t end,
                    SpanDetail detail = {}) {
  return {kind, name, detail, start * kMicro, end * kMicro};
}

inline TraceHeader header_of(int rank, TracePlace place, TracePlace grid) {
  TraceHeader header;
  header.id = 77;
  header.rank = rank;
  header.ranks = grid.dp * grid.tp * grid.pp;
  header.host = "node" + std::to_string(rank);
  header.device = "simulated CUDA device";
  header.place = place;
  header.grid = grid;
  header.clock_offset_ns = -1234567;
  header.clock_uncertainty_ns = 1500;
  return header;
}

// Returns the spans in the order of a log: inner spans come first.
inline std::vector<Span> first_stage() {
  return {span_at(SpanKind::data, "tokens", 1000, 1004),
          span_at(SpanKind::tensor, "tensor-parallel", 1010, 1013),
          span_at(SpanKind::compute, "forward", 1000, 1020, {0, 0, -1}),
          span_at(SpanKind::send, "activation", 1020, 1021, {0, 0, 1}),
          span_at(SpanKind::stages, "gradient", 1021, 1061, {0, 0, 1}),
          span_at(SpanKind::replicas, "gradients", 1070, 1072),
          span_at(SpanKind::compute, "backward", 1061, 1081, {0, 0, -1}),
          span_at(SpanKind::meet, "losses", 1081, 1086),
          span_at(SpanKind::replicas, "gradient norm", 1087, 1089),
          span_at(SpanKind::optimizer, "optimizer", 1086, 1095),
          span_at(SpanKind::checkpoint, "checkpoint", 1096, 1098),
          span_at(SpanKind::step, "step", 1000, 1100, {3, -1, -1})};
}

inline std::vector<Span> last_stage() {
  return {span_at(SpanKind::stages, "activation", 1000, 1022, {0, 0, 0}),
          span_at(SpanKind::compute, "forward", 1022, 1040, {0, 0, -1}),
          span_at(SpanKind::compute, "backward", 1040, 1046, {0, 0, -1}),
          span_at(SpanKind::send, "gradient", 1046, 1047, {0, 0, 0}),
          span_at(SpanKind::meet, "losses", 1047, 1086),
          span_at(SpanKind::optimizer, "optimizer", 1086, 1095),
          span_at(SpanKind::step, "step", 1000, 1100, {3, -1, -1})};
}

inline std::string first_text() {
  return trace_text(header_of(0, {0, 0, 0}, {1, 1, 2}), first_stage(),
                    {{"dp", "all_reduce", 7, 4096, 1010 * kMicro, 1011 * kMicro, 1015 * kMicro},
                     {"dp", "all_reduce", 8, 4096, 1010 * kMicro, 1012 * kMicro, 1013 * kMicro},
                     {"dp", "all_reduce", 9, 4096, 1010 * kMicro, 1015 * kMicro, 1016 * kMicro}});
}

inline std::string last_text() {
  return trace_text(header_of(1, {0, 0, 1}, {1, 1, 2}), last_stage(), {});
}

}  // namespace trireme
