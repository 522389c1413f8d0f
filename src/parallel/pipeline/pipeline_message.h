// Identifies the tensors that one step of a pipeline passes to another, on any rank. Pure functions
// of the schedule.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include "src/parallel/pipeline/schedule.h"

namespace trireme {

struct PipelineMessage {
  enum class Kind : std::uint8_t {
    activation,  // to the forward step of the next virtual stage
    gradient,    // to the backward step of the previous virtual stage
    embedding,   // from the first virtual stage's backward to the last one's tie
  };
  Kind kind = Kind::activation;
  int chunk = 0;  // of the receiver
  std::int64_t micro_batch = 0;
  friend bool operator==(const PipelineMessage&, const PipelineMessage&) = default;
  friend bool operator<(const PipelineMessage& a, const PipelineMessage& b) {
    return std::tie(a.kind, a.chunk, a.micro_batch) < std::tie(b.kind, b.chunk, b.micro_batch);
  }
};

// Addressed is a message and the rank that sends it to this one, or receives it from this one.
struct Addressed {
  PipelineMessage message;
  int peer = 0;
};

// Returns "activation", "gradient" or "embedding".
std::string_view name_of(PipelineMessage::Kind kind);

// Returns the message that the step of this stage needs, if any. Its peer may be the stage itself.
std::optional<Addressed> message_into(const PipelineStep& step, const PipelineShape& shape,
                                      int stage);
// Return the message with the step's result, and the one with the embedding's gradient, if any.
std::optional<Addressed> message_out_of(const PipelineStep& step, const PipelineShape& shape,
                                        int stage);
std::optional<Addressed> embedding_message(const PipelineStep& step, const PipelineShape& shape,
                                           int stage);

// Returns a tag for Communicator::send(); each kind has a lane of its own. Messages that can be in
// flight between two ranks at one time have different tags, except micro-batches that are very far
// apart; messages with one tag keep their order. Within a lane, two ranks send and receive in the
// same order.
int tag_of(const PipelineMessage& message, const PipelineShape& shape);

}  // namespace trireme
