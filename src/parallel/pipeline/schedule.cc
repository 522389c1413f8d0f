#include "src/parallel/pipeline/schedule.h"

#include <algorithm>
#include <array>

#include <fmt/ranges.h>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/parallel/pipeline/simulation.h"

namespace trireme {
namespace {

using Kind = PipelineStep::Kind;

constexpr std::array<std::string_view, 4> kNames = {"gpipe", "1f1b", "interleaved", "zero_bubble"};
constexpr std::array<std::string_view, 5> kKindNames = {"forward", "backward", "input gradient",
                                                        "weight gradient", "tie"};

void check_positive(std::string_view what, std::int64_t value) {
  if (value < 1) {
    throw ConfigError(fmt::format("a pipeline has {} {}: there must be at least 1", value, what));
  }
}

// Returns the number of forwards that a stage runs before its first backward. Interleaved:
// Narayanan et al., 2021, and Megatron-LM's schedules.py.
std::int64_t warm_up(PipelineSchedule schedule, const PipelineShape& shape, int stage) {
  const std::int64_t stages_behind = shape.stages - stage - 1;
  const std::int64_t forwards = shape.micro_batches * shape.chunks;
  switch (schedule) {
    case PipelineSchedule::gpipe:
      return forwards;
    case PipelineSchedule::interleaved:
      return std::min(2 * stages_behind + std::int64_t{shape.chunks - 1} * shape.stages, forwards);
    case PipelineSchedule::one_f_one_b:
    case PipelineSchedule::zero_bubble:
      break;
  }
  return std::min(stages_behind, forwards);
}

// Returns 1f1b's order. With zero_bubble (ZB-H1 of Qi et al., 2023), the gradients of the weights
// are put off as long as at most shape.stages micro-batches stay live: from forward number
// shape.stages on, one runs before each forward. After the last forward, one takes the place of
// each forward, where 1f1b would be idle, and the others run at the end.
std::vector<PipelineStep> make_untied(PipelineSchedule schedule, const PipelineShape& shape,
                                      int stage) {
  const bool is_split = schedule == PipelineSchedule::zero_bubble;
  const std::vector<PipelineStep> forwards = make_forward_schedule(shape);
  const auto count = static_cast<std::int64_t>(forwards.size());
  const std::int64_t ahead = warm_up(schedule, shape, stage);
  std::vector<PipelineStep> steps;
  std::int64_t weights = 0;  // micro-batches whose weight gradients have been scheduled
  for (std::int64_t k = 0; k < count + ahead; ++k) {
    if (is_split && k >= std::min<std::int64_t>(shape.stages, count) && weights < k - ahead) {
      steps.push_back({Kind::backward_weight, 0, weights++});
    }
    if (k < count) {
      steps.push_back(forwards[static_cast<std::size_t>(k)]);
    }
    if (k >= ahead) {
      PipelineStep step = forwards[static_cast<std::size_t>(k - ahead)];
      step.kind = is_split ? Kind::backward_input : Kind::backward;
      step.chunk = shape.chunks - 1 - step.chunk;
      steps.push_back(step);
    }
  }
  for (; is_split && weights < count; ++weights) {
    steps.push_back({Kind::backward_weight, 0, weights});
  }
  return steps;
}

// Inserts each tie where, in the simulation, the first stage's gradient has arrived and one
// forward's time has passed since. A gradient that came late would delay the last stage, for which
// all others wait.
std::vector<PipelineStep> with_ties(PipelineSchedule schedule, const PipelineShape& shape) {
  PipelineSteps all;
  for (int stage = 0; stage < shape.stages; ++stage) {
    all.push_back(make_untied(schedule, shape, stage));
  }
  const StageCosts unit;
  const PipelineSimulation plain = simulate(all, shape, equal_costs(shape, unit));
  std::vector<double> due;  // by micro-batch, rising
  for (const TimedStep& timed : plain.stages.front()) {
    if (sends_gradient(timed.step.kind) && timed.step.chunk == 0) {
      due.push_back(timed.end + unit.forward);
    }
  }
  std::vector<PipelineStep> steps;
  std::size_t tied = 0;
  const auto push_tie = [&] {
    steps.push_back({Kind::tie, shape.chunks - 1, static_cast<std::int64_t>(tied)});
    ++tied;
  };
  for (const TimedStep& timed : plain.stages.back()) {
    while (tied < due.size() && due[tied] <= timed.start) {
      push_tie();
    }
    steps.push_back(timed.step);
  }
  while (tied < due.size()) {
    push_tie();
  }
  return steps;
}

}  // namespace

std::string_view name_of(PipelineSchedule schedule) {
  return kNames.at(static_cast<std::size_t>(schedule));
}

std::vector<std::string> pipeline_schedule_names() { return {kNames.begin(), kNames.end()}; }

PipelineSchedule parse_pipeline_schedule(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) {
      return static_cast<PipelineSchedule>(i);
    }
  }
  throw ConfigError(fmt::format("unknown pipeline schedule '{}': choose one of {}", name,
                                fmt::join(kNames, ", ")));
}

std::string_view name_of(PipelineStep::Kind kind) {
  return kKindNames.at(static_cast<std::size_t>(kind));
}

std::string describe(const PipelineStep& step) {
  return fmt::format("{} of micro-batch {}, chunk {}", name_of(step.kind), step.micro_batch,
                     step.chunk);
}

void check_pipeline(PipelineSchedule schedule, const PipelineShape& shape) {
  check_positive("stages", shape.stages);
  check_positive("virtual stages per rank", shape.chunks);
  check_positive("micro-batches", shape.micro_batches);
  if (schedule != PipelineSchedule::interleaved) {
    if (shape.chunks > 1) {
      throw ConfigError(
          fmt::format("the schedule {} has 1 virtual stage per rank, not {}: use 1, or the "
                      "schedule interleaved",
                      name_of(schedule), shape.chunks));
    }
    return;
  }
  if (shape.chunks == 1) {
    throw ConfigError(
        "the schedule interleaved needs at least 2 virtual stages per rank: use 2 or more, or the "
        "schedule 1f1b");
  }
  const std::int64_t over = shape.micro_batches % shape.stages;
  if (over != 0) {
    const std::int64_t below = shape.micro_batches - over;
    throw ConfigError(fmt::format(
        "the schedule interleaved needs the number of micro-batches per replica and step to be a "
        "multiple of the {1} stages, but it is {0}: use {2}{3} micro-batches, or the schedule 1f1b",
        shape.micro_batches, shape.stages, below > 0 ? fmt::format("{} or ", below) : "",
        below + shape.stages));
  }
}

std::vector<PipelineStep> make_schedule(PipelineSchedule schedule, const PipelineShape& shape,
                                        int stage) {
  check_pipeline(schedule, shape);
  check(stage >= 0 && stage < shape.stages, "a stage is one of the pipeline's");
  const bool ties = shape.tied && shape.stages > 1 && stage == shape.stages - 1;
  return ties ? with_ties(schedule, shape) : make_untied(schedule, shape, stage);
}

PipelineSteps make_schedules(PipelineSchedule schedule, const PipelineShape& shape) {
  PipelineSteps all;
  for (int stage = 0; stage < shape.stages; ++stage) {
    all.push_back(make_schedule(schedule, shape, stage));
  }
  return all;
}

// Groups as many micro-batches as there are stages. A group goes through the first chunk, then
// through the next, and so on.
std::vector<PipelineStep> make_forward_schedule(const PipelineShape& shape) {
  std::vector<PipelineStep> steps;
  for (std::int64_t first = 0; first < shape.micro_batches; first += shape.stages) {
    const std::int64_t end = std::min(first + shape.stages, shape.micro_batches);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (std::int64_t m = first; m < end; ++m) {
        steps.push_back({Kind::forward, chunk, m});
      }
    }
  }
  return steps;
}

}  // namespace trireme
