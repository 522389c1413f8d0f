#include "src/parallel/pipeline/transfer_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "src/parallel/pipeline/simulation.h"

namespace trireme {
namespace {

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

// Place is where a step stands in the order of all steps.
struct Place {
  double end = 0;
  int stage = 0;
  friend bool operator<(const Place& a, const Place& b) {
    return std::tie(a.end, a.stage) < std::tie(b.end, b.stage);
  }
};

std::vector<std::vector<Place>> places_of(const PipelineSteps& steps, const PipelineShape& shape) {
  PipelineCosts costs = equal_costs(shape, {});
  costs.tie = 1;
  std::vector<std::vector<Place>> places;
  for (const std::vector<TimedStep>& stage : simulate(steps, shape, costs).stages) {
    std::vector<Place>& own = places.emplace_back();
    for (const TimedStep& step : stage) {
      own.push_back({step.end, static_cast<int>(places.size()) - 1});
    }
  }
  return places;
}

}  // namespace

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

std::vector<PostedReceive> receives_in_order(const PipelineSteps& steps, const PipelineShape& shape,
                                             int stage) {
  const std::vector<std::vector<Place>> places = places_of(steps, shape);
  std::map<PipelineMessage, Place> sent;  // to the stage, by the step that sends
  for (int sender = 0; sender < shape.stages; ++sender) {
    const auto at = static_cast<std::size_t>(sender);
    for (std::size_t number = 0; number < steps.at(at).size(); ++number) {
      const PipelineStep& step = steps[at][number];
      for (const auto& to :
           {message_out_of(step, shape, sender), embedding_message(step, shape, sender)}) {
        if (to && to->peer == stage && sender != stage) {
          sent[to->message] = places[at][number];
        }
      }
    }
  }
  const auto own = static_cast<std::size_t>(stage);
  std::vector<std::tuple<Place, PipelineMessage::Kind, PostedReceive>> receives;
  for (std::size_t number = 0; number < steps.at(own).size(); ++number) {
    const auto from = message_into(steps[own][number], shape, stage);
    if (from && from->peer != stage) {
      const Place place = sent.at(from->message);
      const auto next = std::lower_bound(places[own].begin(), places[own].end(), place);
      const auto before = static_cast<std::size_t>(next - places[own].begin());
      receives.push_back({place, from->message.kind, {number, before}});
    }
  }
  std::sort(receives.begin(), receives.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::vector<PostedReceive> posted;
  for (const auto& [place, kind, receive] : receives) {
    posted.push_back(receive);
  }
  return posted;
}

TransferOrder transfer_order(const PipelineSteps& steps, const PipelineShape& shape, int stage) {
  return {steps_of_arrival(steps, shape, stage), receives_in_order(steps, shape, stage)};
}

TransferOrder order_of_forwards(const PipelineShape& shape, int stage) {
  const PipelineSteps steps(static_cast<std::size_t>(shape.stages), make_forward_schedule(shape));
  return {{}, receives_in_order(steps, shape, stage)};
}

}  // namespace trireme
