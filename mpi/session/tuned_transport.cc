#include "mpi/session/tuned_transport.h"

#include "mpi/collective/algorithms.h"

namespace trireme {
namespace {

class TunedAlgorithms : public Algorithms {
 public:
  struct Way {
    Backend backend;
    Transport* transport;
    std::unique_ptr<Algorithms> algorithms;
  };
  TunedAlgorithms(std::vector<Way> ways, const Tuning& tuning)
      : ways_(std::move(ways)), tuning_(tuning) {}

  void all_reduce(Exchange& exchange, View data, ReduceOp op) override {
    run(exchange, data.bytes(),
        [&](Algorithms& way, Exchange& own) { way.all_reduce(own, data, op); });
  }
  void all_reduce_into(Exchange& exchange, ConstView from, View into, ReduceOp op) override {
    run(exchange, into.bytes(),
        [&](Algorithms& way, Exchange& own) { way.all_reduce_into(own, from, into, op); });
  }
  void reduce_scatter(Exchange& exchange, View data, ReduceOp op) override {
    run(exchange, data.bytes(),
        [&](Algorithms& way, Exchange& own) { way.reduce_scatter(own, data, op); });
  }
  void all_gather(Exchange& exchange, View data) override {
    run(exchange, data.bytes(), [&](Algorithms& way, Exchange& own) { way.all_gather(own, data); });
  }
  // Chooses by size 0: the ranks' sizes may differ, but their choices must not.
  void all_to_all(Exchange& exchange, const AllToAll& blocks) override {
    run(exchange, 0, [&](Algorithms& way, Exchange& own) { way.all_to_all(own, blocks); });
  }
  void broadcast(Exchange& exchange, View data, int root) override {
    run(exchange, data.bytes(),
        [&](Algorithms& way, Exchange& own) { way.broadcast(own, data, root); });
  }
  void barrier(Exchange& exchange) override {
    run(exchange, 0, [&](Algorithms& way, Exchange& own) { way.barrier(own); });
  }

 private:
  template <class Operation>
  void run(Exchange& exchange, std::int64_t bytes, Operation operation) {
    Way& way = choose(name_of(exchange.label().kind), bytes);
    Exchange own = exchange.over(*way.transport);
    operation(*way.algorithms, own);
    own.wait_all();
  }
  Way& choose(std::string_view op, std::int64_t bytes) {
    const auto wanted = tuning_.choose(op, bytes);
    for (Way& way : ways_) {
      if (way.backend == wanted) {
        return way;
      }
    }
    return ways_.front();
  }

  std::vector<Way> ways_;
  const Tuning& tuning_;
};

}  // namespace

TunedTransport::TunedTransport(std::vector<Choice> choices, Tuning tuning)
    : Transport(choices.at(0).transport->members()),
      choices_(std::move(choices)),
      tuning_(std::move(tuning)) {}

void TunedTransport::cancel_all() noexcept {
  for (const Choice& choice : choices_) {
    choice.transport->cancel_all();
  }
}

std::unique_ptr<Algorithms> TunedTransport::make_algorithms() {
  std::vector<TunedAlgorithms::Way> ways;
  for (const Choice& choice : choices_) {
    ways.push_back({choice.backend, choice.transport.get(), choice.transport->make_algorithms()});
  }
  return std::make_unique<TunedAlgorithms>(std::move(ways), tuning_);
}

std::unique_ptr<Transport> TunedTransport::split_off(const std::vector<int>& members) {
  std::vector<Choice> parts;
  for (const Choice& choice : choices_) {
    parts.push_back({choice.backend, choice.transport->split_off(members)});
  }
  return std::make_unique<TunedTransport>(std::move(parts), tuning_);
}

}  // namespace trireme
