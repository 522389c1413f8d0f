#include "src/parallel/pipeline/pipeline_message.h"

#include <map>

#include <gtest/gtest.h>

#include "mpi/operation_request.h"
#include "src/base/error.h"
#include "tests/parallel/pipeline/schedule_grid.h"

namespace trireme {
namespace {

// A Line is the direction between two ranks: the sender, then the receiver.
using Line = std::pair<int, int>;

// Each message that a step sends is received by exactly one step: on the rank to which it was sent,
// and from the rank that sent it.
TEST(PipelineMessage, WhatOneStepSendsAnotherTakes) {
  for (const GridPoint& point : schedule_grid(5, 10)) {
    const PipelineShape& shape = point.shape;
    std::map<Line, std::map<PipelineMessage, int>> balance;
    for (int stage = 0; stage < shape.stages; ++stage) {
      for (const PipelineStep& step : make_schedule(point.schedule, shape, stage)) {
        if (const auto in = message_into(step, shape, stage)) {
          balance[{in->peer, stage}][in->message] -= 1;
        }
        if (const auto out = message_out_of(step, shape, stage)) {
          balance[{stage, out->peer}][out->message] += 1;
        }
        if (const auto out = embedding_message(step, shape, stage)) {
          balance[{stage, out->peer}][out->message] += 1;
        }
      }
    }
    for (const auto& [line, messages] : balance) {
      for (const auto& [message, sum] : messages) {
        ASSERT_EQ(sum, 0) << point.text() << ": " << line.first << " to " << line.second
                          << ", micro-batch " << message.micro_batch << ", chunk " << message.chunk;
      }
    }
  }
}

TEST(PipelineMessage, TagsAreTheirOwn) {
  const PipelineShape shape{4, 3, 24, true};
  std::map<int, PipelineMessage> seen;
  for (int stage = 0; stage < shape.stages; ++stage) {
    for (const PipelineStep& step : make_schedule(PipelineSchedule::interleaved, shape, stage)) {
      if (const auto in = message_into(step, shape, stage)) {
        const int tag = tag_of(in->message, shape);
        EXPECT_GE(tag, 0);
        EXPECT_LE(tag, kMaxUserTag);
        EXPECT_EQ(seen.try_emplace(tag, in->message).first->second, in->message);
      }
    }
  }
  EXPECT_GT(seen.size(), 24U * 3 * 2);
  const PipelineShape many{2, 5461, 1};
  EXPECT_LE(tag_of({PipelineMessage::Kind::embedding, 5460, 1'000'000}, many), kMaxUserTag);
  EXPECT_THROW((void)tag_of({}, {2, 5462, 1}), InternalError);
}

// A library without tags, such as NCCL, matches the messages of a lane by their order.
TEST(PipelineMessage, TheMessagesOfALaneAreReceivedInTheOrderOfTheirSends) {
  for (const GridPoint& point : schedule_grid(5, 10)) {
    const PipelineShape& shape = point.shape;
    std::map<std::pair<Line, int>, std::vector<PipelineMessage>> sent;
    std::map<std::pair<Line, int>, std::vector<PipelineMessage>> received;
    const auto lane = [&](const Addressed& to) { return lane_of(tag_of(to.message, shape)); };
    for (int stage = 0; stage < shape.stages; ++stage) {
      for (const PipelineStep& step : make_schedule(point.schedule, shape, stage)) {
        if (const auto in = message_into(step, shape, stage); in && in->peer != stage) {
          received[{{in->peer, stage}, lane(*in)}].push_back(in->message);
        }
        for (const auto& out :
             {message_out_of(step, shape, stage), embedding_message(step, shape, stage)}) {
          if (out && out->peer != stage) {
            sent[{{stage, out->peer}, lane(*out)}].push_back(out->message);
          }
        }
      }
    }
    ASSERT_TRUE(sent == received) << point.text();
  }
}

}  // namespace
}  // namespace trireme
