// What one step hands to another, on whichever rank. Pure functions of the schedule.
#pragma once

#include <optional>
#include <string_view>
#include <tuple>

#include "src/parallel/pipeline/schedule.h"

namespace trireme {

struct PipelineMessage {
  enum class Kind : std::uint8_t {
    activation,  // to the forward of the next virtual stage
    gradient,    // to the backward of the one before
    embedding,   // from the first virtual stage's backward to the last one's tie
  };
  Kind kind = Kind::activation;
  int chunk = 0;  // the receiver's
  std::int64_t micro_batch = 0;
  friend bool operator==(const PipelineMessage&, const PipelineMessage&) = default;
  friend bool operator<(const PipelineMessage& a, const PipelineMessage& b) {
    return std::tie(a.kind, a.chunk, a.micro_batch) < std::tie(b.kind, b.chunk, b.micro_batch);
  }
};

// A message and the rank at its other end.
struct Addressed {
  PipelineMessage message;
  int peer = 0;
};

// "activation", "gradient", "embedding".
std::string_view name_of(PipelineMessage::Kind kind);

// What the step of this stage needs; none for a stage's own.
std::optional<Addressed> message_into(const PipelineStep& step, const PipelineShape& shape,
                                      int stage);
// What its result is for; none for what stays. The embedding's gradient goes out beside it.
std::optional<Addressed> message_out_of(const PipelineStep& step, const PipelineShape& shape,
                                        int stage);
std::optional<Addressed> embedding_message(const PipelineStep& step, const PipelineShape& shape,
                                           int stage);

// 0 <= tag < tags. Different for all that can be under way between two ranks at one time: only
// micro-batches very far apart share one, and those of one tag keep their order.
int tag_of(const PipelineMessage& message, const PipelineShape& shape, int tags);

}  // namespace trireme
