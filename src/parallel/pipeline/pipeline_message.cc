#include "src/parallel/pipeline/pipeline_message.h"

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

int tag_of(const PipelineMessage& message, const PipelineShape& shape) {
  const int window = kTagsPerLane / shape.chunks;
  check(window > 0, "there are tags for every chunk of a rank");
  return static_cast<int>(message.kind) * kTagsPerLane + message.chunk * window +
         static_cast<int>(message.micro_batch % window);
}

}  // namespace trireme
