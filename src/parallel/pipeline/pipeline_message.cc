#include "src/parallel/pipeline/pipeline_message.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "mpi/operation_request.h"
#include "src/base/check.h"
#include "src/parallel/pipeline/simulation.h"

namespace trireme {
namespace {

using MessageKind = PipelineMessage::Kind;

static_assert(kTagLanes == 3, "each kind of message has a lane");

bool is_first(const PipelineShape& shape, int stage, int chunk) {
  return shape.virtual_stage(stage, chunk) == 0;
}
bool is_last(const PipelineShape& shape, int stage, int chunk) {
  return shape.virtual_stage(stage, chunk) == shape.virtual_stages() - 1;
}
// The neighbours of a rank; virtual stages are assigned to the ranks in turn.
int next_rank(const PipelineShape& shape, int stage) { return (stage + 1) % shape.stages; }
int previous_rank(const PipelineShape& shape, int stage) {
  return (stage + shape.stages - 1) % shape.stages;
}

// Clock holds, for each stage, how many of its steps are known to have taken their inputs.
using Clock = std::vector<std::size_t>;
using OnTaken = std::function<void(int stage, std::size_t number, const Clock& clock)>;

// Runs the steps of all stages in an order that their messages allow. Calls on_taken when a step
// has taken its input, with what the stage knows then: a message tells what its sender knew.
void replay(const PipelineSteps& steps, const PipelineShape& shape, const OnTaken& on_taken) {
  std::vector<Clock> clocks(steps.size(), Clock(steps.size(), 0));
  std::map<std::pair<int, PipelineMessage>, Clock> sent;  // by receiver and message
  for (bool moved = true; moved;) {
    moved = false;
    for (int stage = 0; stage < shape.stages; ++stage) {
      Clock& clock = clocks[static_cast<std::size_t>(stage)];
      std::size_t& done = clock[static_cast<std::size_t>(stage)];
      const std::vector<PipelineStep>& own = steps[static_cast<std::size_t>(stage)];
      for (; done < own.size(); moved = true) {
        const PipelineStep& step = own[done];
        if (const auto from = message_into(step, shape, stage)) {
          const auto found = sent.extract({stage, from->message});
          if (found.empty()) {
            break;
          }
          for (std::size_t s = 0; s < clock.size(); ++s) {
            clock[s] = std::max(clock[s], found.mapped()[s]);
          }
        }
        ++done;
        on_taken(stage, done - 1, clock);
        for (const auto& to :
             {message_out_of(step, shape, stage), embedding_message(step, shape, stage)}) {
          if (to) {
            sent.insert_or_assign({to->peer, to->message}, clock);
          }
        }
      }
    }
  }
}

}  // namespace

std::string_view name_of(PipelineMessage::Kind kind) {
  switch (kind) {
    case PipelineMessage::Kind::activation:
      return "activation";
    case PipelineMessage::Kind::gradient:
      return "gradient";
    case PipelineMessage::Kind::embedding:
      return "embedding";
  }
  return "?";
}

std::optional<Addressed> message_into(const PipelineStep& step, const PipelineShape& shape,
                                      int stage) {
  const PipelineMessage message{MessageKind::activation, step.chunk, step.micro_batch};
  if (step.kind == PipelineStep::Kind::forward) {
    return is_first(shape, stage, step.chunk)
               ? std::nullopt
               : std::optional<Addressed>({message, previous_rank(shape, stage)});
  }
  if (step.kind == PipelineStep::Kind::tie) {
    return Addressed{{MessageKind::embedding, step.chunk, step.micro_batch}, 0};
  }
  if (!sends_gradient(step.kind) || is_last(shape, stage, step.chunk)) {
    return std::nullopt;
  }
  return Addressed{{MessageKind::gradient, step.chunk, step.micro_batch}, next_rank(shape, stage)};
}

std::optional<Addressed> message_out_of(const PipelineStep& step, const PipelineShape& shape,
                                        int stage) {
  if (step.kind == PipelineStep::Kind::forward) {
    if (is_last(shape, stage, step.chunk)) {
      return std::nullopt;
    }
    const int chunk = stage == shape.stages - 1 ? step.chunk + 1 : step.chunk;
    return Addressed{{MessageKind::activation, chunk, step.micro_batch}, next_rank(shape, stage)};
  }
  if (!sends_gradient(step.kind) || is_first(shape, stage, step.chunk)) {
    return std::nullopt;
  }
  const int chunk = stage == 0 ? step.chunk - 1 : step.chunk;
  return Addressed{{MessageKind::gradient, chunk, step.micro_batch}, previous_rank(shape, stage)};
}

std::optional<Addressed> embedding_message(const PipelineStep& step, const PipelineShape& shape,
                                           int stage) {
  if (!shape.tied || shape.stages == 1 || !sends_gradient(step.kind) ||
      !is_first(shape, stage, step.chunk)) {
    return std::nullopt;
  }
  return Addressed{{MessageKind::embedding, shape.chunks - 1, step.micro_batch}, shape.stages - 1};
}

std::vector<std::size_t> steps_of_arrival(const PipelineSteps& steps, const PipelineShape& shape,
                                          int stage) {
  std::map<std::pair<int, PipelineMessage>, std::size_t> takers;  // steps, by stage and message
  for (int taker = 0; taker < shape.stages; ++taker) {
    std::size_t number = 0;
    for (const PipelineStep& step : steps.at(static_cast<std::size_t>(taker))) {
      if (const auto from = message_into(step, shape, taker); from && from->peer == stage) {
        takers[{taker, from->message}] = number;
      }
      ++number;
    }
  }
  const std::vector<PipelineStep>& own = steps.at(static_cast<std::size_t>(stage));
  // By receiver: the messages that are not known to have been taken, by the step that takes them.
  std::vector<std::map<std::size_t, std::size_t>> under_way(steps.size());
  std::vector<std::size_t> arrivals;
  replay(steps, shape, [&](int at, std::size_t number, const Clock& clock) {
    if (at != stage) {
      return;
    }
    for (std::size_t peer = 0; peer < clock.size(); ++peer) {
      std::map<std::size_t, std::size_t>& messages = under_way[peer];
      const auto untaken = messages.lower_bound(clock[peer]);
      for (auto taken = messages.begin(); taken != untaken; taken = messages.erase(taken)) {
        arrivals[taken->second] = number;
      }
    }
    for (const auto& to : {message_out_of(own[number], shape, stage),
                           embedding_message(own[number], shape, stage)}) {
      if (to && to->peer != stage) {
        const std::size_t taker = takers.at({to->peer, to->message});
        under_way[static_cast<std::size_t>(to->peer)][taker] = arrivals.size();
        arrivals.push_back(own.size());
      }
    }
  });
  return arrivals;
}

int tag_of(const PipelineMessage& message, const PipelineShape& shape) {
  const int window = kTagsPerLane / shape.chunks;
  check(window > 0, "there are tags for every chunk of a rank");
  return static_cast<int>(message.kind) * kTagsPerLane + message.chunk * window +
         static_cast<int>(message.micro_batch % window);
}

}  // namespace trireme
