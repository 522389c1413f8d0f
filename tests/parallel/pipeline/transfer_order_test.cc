#include "src/parallel/pipeline/transfer_order.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "src/parallel/pipeline/simulation.h"
#include "tests/parallel/pipeline/schedule_grid.h"

namespace trireme {
namespace {

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
TEST(TransferOrder, AMessageHasArrivedAtTheStepOfItsArrival) {
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
TEST(TransferOrder, ArrivalsOfManyMicroBatchesAreFound) {
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

// Transfer is a message from one rank to another as it stands in the queue of one of them.
struct Transfer {
  bool is_send = false;
  int peer = 0;
  PipelineMessage message;
};

// Queue is what a stage has queued and what has not ended, if all of it shares one queue of the
// device: each operation ends before the next one starts.
using Queue = std::deque<Transfer>;

Queue queue_of(const PipelineSteps& steps, const PipelineShape& shape, int stage) {
  const std::vector<PipelineStep>& own = steps.at(static_cast<std::size_t>(stage));
  Queue queue;
  const std::vector<PostedReceive> receives = receives_in_order(steps, shape, stage);
  auto next = receives.begin();
  std::set<std::size_t> posted;
  for (std::size_t number = 0; number < own.size(); ++number) {
    for (; next != receives.end() && next->before <= number; ++next) {
      const Addressed from = message_into(own.at(next->step), shape, stage).value();
      queue.push_back({false, from.peer, from.message});
      posted.insert(next->step);
    }
    const auto from = message_into(own[number], shape, stage);
    EXPECT_EQ(from && from->peer != stage, posted.contains(number));
    for (const auto& to : {message_out_of(own[number], shape, stage),
                           embedding_message(own[number], shape, stage)}) {
      if (to && to->peer != stage) {
        queue.push_back({true, to->peer, to->message});
      }
    }
  }
  EXPECT_EQ(next, receives.end());
  return queue;
}

// Lets sends and receives end in pairs that stand at the heads of their queues. Returns the number
// of operations that wait for each other in the end.
std::size_t stuck(std::vector<Queue> queues) {
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t stage = 0; stage < queues.size(); ++stage) {
      while (!queues[stage].empty()) {
        const Transfer& head = queues[stage].front();
        Queue& other = queues.at(static_cast<std::size_t>(head.peer));
        if (other.empty() || other.front().peer != static_cast<int>(stage) ||
            other.front().is_send == head.is_send || other.front().message != head.message) {
          break;
        }
        other.pop_front();
        queues[stage].pop_front();
        moved = true;
      }
    }
  }
  std::size_t left = 0;
  for (const Queue& queue : queues) {
    left += queue.size();
  }
  return left;
}

// Even if all streams of a device share one queue, and no send ends before its receive starts.
TEST(TransferOrder, NothingWaitsForItselfInOneQueue) {
  for (const GridPoint& point : schedule_grid(5, 10)) {
    const PipelineSteps steps = make_schedules(point.schedule, point.shape);
    std::vector<Queue> queues;
    for (int stage = 0; stage < point.shape.stages; ++stage) {
      queues.push_back(queue_of(steps, point.shape, stage));
    }
    ASSERT_EQ(stuck(queues), 0U) << point.text();
  }
}

TEST(TransferOrder, EvaluationsDoNotWaitForThemselvesInOneQueue) {
  for (const int stages : {2, 3, 4}) {
    for (const int chunks : {1, 2, 3}) {
      const PipelineShape shape{stages, chunks, 12};
      const PipelineSteps steps(static_cast<std::size_t>(stages), make_forward_schedule(shape));
      std::vector<Queue> queues;
      for (int stage = 0; stage < stages; ++stage) {
        queues.push_back(queue_of(steps, shape, stage));
      }
      EXPECT_EQ(stuck(queues), 0U) << stages << " stages of " << chunks << " chunks";
    }
  }
}

// A stage expects few messages at a time: the memory for them does not grow with the micro-batches.
TEST(TransferOrder, FewReceivesArePostedAtATime) {
  for (const GridPoint& point : schedule_grid(5, 10)) {
    const PipelineSteps steps = make_schedules(point.schedule, point.shape);
    for (int stage = 0; stage < point.shape.stages; ++stage) {
      const std::vector<PostedReceive> receives = receives_in_order(steps, point.shape, stage);
      for (const PostedReceive& one : receives) {
        const auto open = std::count_if(receives.begin(), receives.end(), [&](const auto& other) {
          return other.before <= one.before && other.step >= one.before;
        });
        ASSERT_LE(open, 2 + 2 * point.shape.stages) << point.text() << ", stage " << stage;
      }
    }
  }
}

}  // namespace
}  // namespace trireme
