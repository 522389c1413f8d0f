#include "src/parallel/pipeline/pipeline_message.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "mpi/operation_request.h"
#include "src/base/error.h"
#include "src/parallel/pipeline/simulation.h"
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

// Returns when the step that takes the message starts, which a stage sends to `to.peer`.
double start_of_taker(const PipelineSimulation& simulation, const PipelineShape& shape,
                      const Addressed& to) {
  for (const TimedStep& timed : simulation.stages.at(static_cast<std::size_t>(to.peer))) {
    const auto in = message_into(timed.step, shape, to.peer);
    if (in && in->message == to.message) {
      return timed.start;
    }
  }
  ADD_FAILURE() << "nobody takes the message";
  return 0;
}

// Whatever steps and transfers cost, a message has been taken when the step of its arrival starts,
// and the number of messages that have not arrived does not grow with that of the micro-batches.
TEST(PipelineMessage, HasArrivedAtTheStepOfItsArrival) {
  for (const GridPoint& point : schedule_grid(5, 10)) {
    const PipelineShape& shape = point.shape;
    const PipelineSteps steps = make_schedules(point.schedule, shape);
    PipelineCosts costs = equal_costs(shape, {}, 0.7);
    for (int stage = 0; stage < shape.stages; ++stage) {
      costs.stages.at(static_cast<std::size_t>(stage)).forward = stage % 2 == 0 ? 0.2 : 3;
    }
    const PipelineSimulation simulation = simulate(steps, shape, costs);
    for (int stage = 0; stage < shape.stages; ++stage) {
      const auto& own = simulation.stages.at(static_cast<std::size_t>(stage));
      const std::vector<std::size_t> arrivals = steps_of_arrival(steps, shape, stage);
      std::size_t sent = 0;
      std::size_t most = 0;
      for (std::size_t at = 0; at < own.size(); ++at) {
        for (const auto& to : {message_out_of(own[at].step, shape, stage),
                               embedding_message(own[at].step, shape, stage)}) {
          if (to && to->peer != stage) {
            const std::size_t arrival = arrivals.at(sent++);
            ASSERT_GT(arrival, at) << point.text();
            ASSERT_TRUE(arrival == own.size() ||
                        start_of_taker(simulation, shape, *to) <= own[arrival].start)
                << point.text();
          }
        }
        const auto waiting = std::count_if(arrivals.begin(), arrivals.end(),
                                           [&](std::size_t arrival) { return arrival > at; });
        most = std::max(most, static_cast<std::size_t>(waiting) - (arrivals.size() - sent));
      }
      ASSERT_EQ(sent, arrivals.size()) << point.text();
      if (point.schedule == PipelineSchedule::one_f_one_b ||
          point.schedule == PipelineSchedule::zero_bubble) {
        ASSERT_LE(most, 3U * static_cast<std::size_t>(shape.stages)) << point.text();
      }
    }
  }
}

// If the work grew with the square of the micro-batches, this would take longer than a test may.
TEST(PipelineMessage, ArrivalsOfManyMicroBatchesAreFound) {
  constexpr std::int64_t kMicroBatches = 400'000;
  for (const PipelineSchedule schedule : {PipelineSchedule::gpipe, PipelineSchedule::one_f_one_b}) {
    const PipelineShape shape{2, 1, kMicroBatches};
    const std::vector<std::size_t> arrivals =
        steps_of_arrival(make_schedules(schedule, shape), shape, 0);
    ASSERT_EQ(arrivals.size(), static_cast<std::size_t>(kMicroBatches));
    EXPECT_TRUE(std::is_sorted(arrivals.begin(), arrivals.end()));
    // The gradient of a micro-batch tells that its activations have been taken.
    EXPECT_EQ(arrivals.front(), schedule == PipelineSchedule::gpipe ? arrivals.size() : 2U);
    EXPECT_LT(arrivals.back(), 2 * arrivals.size());
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
