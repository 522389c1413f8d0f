#include <algorithm>
#include <map>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/trace/trace_file.h"

namespace trireme {
namespace {

constexpr std::int64_t kThousand = 1000;

// The text is exact, because nanoseconds are three decimals of a microsecond.
std::string microseconds(std::int64_t ns) {
  const std::int64_t size = ns < 0 ? -ns : ns;
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / kThousand, size % kThousand);
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

nlohmann::json to_json(const TracePlace& place) {
  return {{"dp", place.dp}, {"tp", place.tp}, {"pp", place.pp}};
}

std::string header_text(const TraceHeader& h) {
  const auto us = [](std::int64_t ns) { return static_cast<double>(ns) / kThousand; };
  const nlohmann::ordered_json json = {{"schema", 1},
                                       {"id", h.id},
                                       {"rank", h.rank},
                                       {"ranks", h.ranks},
                                       {"host", h.host},
                                       {"device", h.device},
                                       {"place", to_json(h.place)},
                                       {"grid", to_json(h.grid)},
                                       {"clock",
                                        {{"offset_us", us(h.clock_offset_ns)},
                                         {"uncertainty_us", us(h.clock_uncertainty_ns)},
                                         {"drift_us", us(h.clock_drift_ns)}}},
                                       {"dropped", h.dropped}};
  return json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

std::string detail_text(const SpanDetail& detail) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  const auto add = [&](const char* name, std::int64_t value) {
    if (value >= 0) {
      json[name] = value;
    }
  };
  add("number", detail.number);
  add("chunk", detail.chunk);
  add("stage", detail.stage);
  return json.dump();
}

// Writes the text and assigns the rank's operations to lanes.
class Writer {
 public:
  explicit Writer(const TraceHeader& header) : rank_(header.rank) {
    text_ = fmt::format("{{\"trireme\":{},\n\"displayTimeUnit\":\"ms\",\n\"traceEvents\":[\n",
                        header_text(header));
    name("process_name", 0, fmt::format("rank {} ({})", rank_, header.host));
    name("thread_name", 0, "main");
  }

  void span(const Span& span) {
    event(span.name, name_of(span.kind), 0, span.start_ns, span.end_ns);
    text_ += fmt::format(",\"args\":{}}}", detail_text(span.detail));
  }

  void operation(const TraceOperation& operation) {
    event(operation.name, "operation", lane_of(operation), operation.start_ns, operation.end_ns);
    text_ += fmt::format(",\"args\":{{\"number\":{},\"bytes\":{},\"queued\":{}}}}}",
                         operation.number, operation.bytes, microseconds(operation.queued_ns));
  }

  std::string finish() && { return std::move(text_) + "\n]}\n"; }

 private:
  struct Lane {
    int number = 0;
    std::int64_t end_ns = 0;
  };

  void name(std::string_view what, int lane, const std::string& name) {
    text_ += fmt::format(
        "{}{{\"ph\":\"M\",\"name\":\"{}\",\"pid\":{},\"tid\":{},\"args\":{{\"name\":{}}}}}",
        separator(), what, rank_, lane, json_string(name));
  }

  void event(std::string_view name, std::string_view kind, int lane, std::int64_t start_ns,
             std::int64_t end_ns) {
    text_ += fmt::format(
        "{}{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{}",
        separator(), json_string(name), kind, rank_, lane, microseconds(start_ns),
        microseconds(end_ns - start_ns));
  }

  // Returns the group's first lane that is free at the operation's start, adding one if there is
  // none.
  int lane_of(const TraceOperation& operation) {
    std::vector<Lane>& lanes = lanes_[operation.group];
    for (Lane& lane : lanes) {
      if (lane.end_ns <= operation.start_ns) {
        lane.end_ns = operation.end_ns;
        return lane.number;
      }
    }
    lanes.push_back({++last_lane_, operation.end_ns});
    name("thread_name", last_lane_,
         lanes.size() == 1 ? std::string(operation.group)
                           : fmt::format("{} {}", operation.group, lanes.size()));
    return last_lane_;
  }

  const char* separator() { return std::exchange(first_, false) ? "" : ",\n"; }

  int rank_;
  bool first_ = true;
  std::string text_;
  std::map<std::string_view, std::vector<Lane>> lanes_;
  int last_lane_ = 0;
};

}  // namespace

std::string trace_text(const TraceHeader& header, std::vector<Span> spans,
                       std::vector<TraceOperation> operations) {
  // Inner spans were logged first, so of spans with equal times the last one is the outermost.
  std::reverse(spans.begin(), spans.end());
  sort_by_nesting(spans);
  std::stable_sort(
      operations.begin(), operations.end(),
      [](const TraceOperation& a, const TraceOperation& b) { return a.start_ns < b.start_ns; });
  Writer writer(header);
  for (const Span& span : spans) {
    writer.span(span);
  }
  for (const TraceOperation& operation : operations) {
    writer.operation(operation);
  }
  return std::move(writer).finish();
}

}  // namespace trireme
