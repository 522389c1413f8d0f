#include "src/trace/trace_summary.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "src/base/error.h"
#include "src/base/median.h"
#include "src/trace/step_spans.h"

namespace trireme {
namespace {

constexpr double kSecond = 1e9;

using Steps = std::map<std::int64_t, StepSpans>;  // by step number

Steps by_number(const RankTrace& trace) {
  Steps steps;
  for (StepSpans& step : spans_by_step(trace)) {
    const std::int64_t number = step.step->detail.number;
    if (number < 0 || !steps.emplace(number, std::move(step)).second) {
      throw DataError(
          fmt::format("rank {}: step {} has no number or occurs twice", trace.header.rank, number));
    }
  }
  return steps;
}

// Records, for one step, when ranks sent what other ranks waited for, and when they reached the
// exchange of losses.
class Meetings {
 public:
  explicit Meetings(const std::vector<RankTrace>& traces) : traces_(traces) {}

  void note(std::size_t rank, const StepSpans& step) {
    const TracePlace& place = traces_[rank].header.place;
    for (const OwnTime& time : step.times) {
      if (time.kind == SpanKind::send) {
        sent_.emplace(key(place, place.pp, *time.span, time.span->detail.stage),
                      time.span->start_ns);
      } else if (time.kind == SpanKind::meet) {
        auto& latest = met_.try_emplace({place.dp, place.pp}, time.span->start_ns).first->second;
        latest = std::max(latest, time.span->start_ns);
      }
    }
  }

  // Returns the part of a wait that counts as bubble.
  std::int64_t bubble(std::size_t rank, const OwnTime& time) const {
    const TracePlace& place = traces_[rank].header.place;
    std::int64_t until = time.span->start_ns;
    if (time.kind == SpanKind::stages) {
      const auto sent = sent_.find(key(place, time.span->detail.stage, *time.span, place.pp));
      until = sent == sent_.end() ? until : sent->second;
    } else {
      for (auto each = met_.lower_bound({place.dp, 0});
           each != met_.end() && each->first.first == place.dp; ++each) {
        until = std::max(until, each->first.second == place.pp ? until : each->second);
      }
    }
    return std::clamp<std::int64_t>(until - time.span->start_ns, 0, time.ns);
  }

 private:
  // Replica, tensor-parallel rank, sender's stage, receiver's stage, and the name, chunk and number
  // of the tensor.
  using Key = std::tuple<int, int, int, int, std::string_view, int, std::int64_t>;
  static Key key(const TracePlace& place, int from, const Span& span, int to) {
    return {place.dp, place.tp, from, to, span.name, span.detail.chunk, span.detail.number};
  }

  const std::vector<RankTrace>& traces_;
  std::map<Key, std::int64_t> sent_;
  std::map<std::pair<int, int>, std::int64_t> met_;  // time of the last rank, by replica and stage
};

// When all ranks meet, they wait for each other along the outermost axis that has more than one
// rank.
StepPart part_of_meeting(const TracePlace& grid) {
  if (grid.dp > 1) {
    return StepPart::dp;
  }
  return grid.pp > 1 ? StepPart::pp : StepPart::tp;
}

// Returns the part to which a span's time counts, apart from bubble.
StepPart part_of(SpanKind kind, const TracePlace& grid) {
  switch (kind) {
    case SpanKind::compute:
      return StepPart::compute;
    case SpanKind::data:
      return StepPart::data;
    case SpanKind::tensor:
      return StepPart::tp;
    case SpanKind::replicas:
      return StepPart::dp;
    case SpanKind::meet:
      return part_of_meeting(grid);
    case SpanKind::stages:
    case SpanKind::send:
      return StepPart::pp;
    case SpanKind::optimizer:
      return StepPart::optimizer;
    case SpanKind::step:
    case SpanKind::checkpoint:
    case SpanKind::evaluation:
      break;
  }
  return StepPart::other;
}

StepTimes times_of(const TracePlace& grid, std::size_t rank, const StepSpans& step,
                   const Meetings& meetings) {
  StepTimes times;
  times.step = static_cast<double>(step.step->end_ns - step.step->start_ns) / kSecond;
  for (const OwnTime& time : step.times) {
    const bool waits = time.kind == SpanKind::stages || time.kind == SpanKind::meet;
    const std::int64_t bubble = waits ? meetings.bubble(rank, time) : 0;
    times[StepPart::bubble] += static_cast<double>(bubble) / kSecond;
    const double seconds = static_cast<double>(time.ns - bubble) / kSecond;
    times[part_of(time.kind, grid)] += seconds;
    times.checkpoint += time.kind == SpanKind::checkpoint ? seconds : 0;
    times.evaluation += time.kind == SpanKind::evaluation ? seconds : 0;
  }
  return times;
}

StepTimes mean_of(const std::vector<StepTimes>& all) {
  StepTimes mean;
  const auto count = static_cast<double>(all.size());
  for (const StepTimes& each : all) {
    mean.step += each.step / count;
    mean.checkpoint += each.checkpoint / count;
    mean.evaluation += each.evaluation / count;
    for (std::size_t part = 0; part < kStepParts; ++part) {
      mean.parts[part] += each.parts[part] / count;
    }
  }
  return mean;
}

std::vector<std::int64_t> steps_in_common(const std::vector<Steps>& ranks) {
  std::vector<std::int64_t> numbers;
  for (const auto& [number, spans] : ranks.front()) {
    const bool everywhere = std::all_of(ranks.begin(), ranks.end(),
                                        [at = number](const Steps& s) { return s.contains(at); });
    if (everywhere) {
      numbers.push_back(number);
    }
  }
  if (numbers.empty()) {
    throw DataError("the ranks' traces have no step in common: trace again");
  }
  return numbers;
}

// Returns the times of each rank, step by step.
std::vector<std::vector<StepTimes>> all_times(const std::vector<RankTrace>& traces,
                                              const std::vector<Steps>& steps,
                                              const std::vector<std::int64_t>& numbers) {
  std::vector<std::vector<StepTimes>> times(traces.size());
  for (const std::int64_t number : numbers) {
    Meetings meetings(traces);
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      meetings.note(rank, steps[rank].at(number));
    }
    for (std::size_t rank = 0; rank < traces.size(); ++rank) {
      times[rank].push_back(
          times_of(traces[rank].header.grid, rank, steps[rank].at(number), meetings));
    }
  }
  return times;
}

double median_compute(const std::vector<StepTimes>& steps) {
  std::vector<double> seconds;
  for (const StepTimes& step : steps) {
    seconds.push_back(step[StepPart::compute]);
  }
  return median(std::move(seconds));
}

}  // namespace

std::string_view name_of(StepPart part) {
  constexpr std::array<std::string_view, kStepParts> kNames = {
      "compute", "exposed tp", "exposed dp", "exposed pp", "bubble", "data", "optimizer", "other"};
  return kNames.at(static_cast<std::size_t>(part));
}

double StepTimes::sum() const {
  double sum = 0;
  for (const double part : parts) {
    sum += part;
  }
  return sum;
}

TraceSummary summarize(const std::vector<RankTrace>& traces) {
  std::vector<Steps> steps;
  for (const RankTrace& trace : traces) {
    steps.push_back(by_number(trace));
  }
  TraceSummary summary;
  summary.steps = steps_in_common(steps);
  const auto times = all_times(traces, steps, summary.steps);
  std::vector<ComputeTime> compute;
  std::vector<StepTimes> means;
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    means.push_back(mean_of(times[rank]));
    compute.push_back({traces[rank].header.place.pp, median_compute(times[rank])});
  }
  const std::vector<Slowness> slowness = judge_slowness(compute);
  for (std::size_t rank = 0; rank < traces.size(); ++rank) {
    summary.ranks.push_back(
        {traces[rank].header, means[rank], compute[rank].seconds, slowness[rank]});
  }
  summary.mean = mean_of(means);
  return summary;
}

}  // namespace trireme
