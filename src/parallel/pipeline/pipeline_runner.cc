#include "src/parallel/pipeline/pipeline_runner.h"

#include <deque>
#include <map>

#include "src/base/check.h"
#include "src/base/stopwatch.h"
#include "src/parallel/pipeline/pipeline_message.h"

namespace trireme {
namespace {

using Kind = PipelineStep::Kind;

// Receives that are posted while a step computes, if nothing is queued on a device: one from each
// neighbour.
constexpr std::size_t kReceivesAhead = 2;

struct Transfer {
  Tensor tensor;
  Pending pending;
  std::size_t arrival = 0;  // for sends: steps_of_arrival()
};

}  // namespace

// Run is one run of a schedule. If it ends early, operations in flight are abandoned before their
// buffers are freed.
class PipelineRunner::Run {
 public:
  Run(PipelineRunner& runner, std::span<const PipelineStep> steps, StageWork& work,
      const TransferOrder* order)
      : runner_(runner),
        steps_(steps),
        work_(work),
        order_(order),
        stage_(runner.tools_.pp.rank()) {}
  ~Run() {
    for (auto& [step, receive] : receives_) {
      receive.pending.abandon();
    }
    for (Transfer& send : sends_) {
      send.pending.abandon();
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  void execute() {
    for (std::size_t number = 0; number < steps_.size(); ++number) {
      const PipelineStep& step = steps_[number];
      Tensor input = order_ == nullptr ? take_early(number) : take_in_order(number);
      const double start = watch_.seconds();
      SpanTimer span(runner_.tools_.spans, SpanKind::compute, name_of(step.kind),
                     {step.micro_batch, step.chunk, -1});
      Tensor output = compute(step, std::move(input));
      const auto embedding = embedding_message(step, runner_.shape_, stage_);
      Tensor embedded = embedding ? work_.embedding_gradient(step.micro_batch) : Tensor();
      span.end();
      note({step, start, watch_.seconds()});
      pass_on(message_out_of(step, runner_.shape_, stage_), std::move(output));
      pass_on(embedding, std::move(embedded));
    }
    check(own_.empty() && receives_.empty(), "a schedule uses every tensor that it receives");
    wait_for_sends();
    runner_.timings_.seconds = watch_.seconds();
  }

 private:
  // Returns the input of a step; receives are posted in the order of their steps, as early as it
  // pays.
  Tensor take_early(std::size_t number) {
    settle_sends();
    post_receives(1);
    Tensor input = take_input(number);
    post_receives(kReceivesAhead);
    return input;
  }

  // Returns the input of a step; receives are posted where the order says.
  Tensor take_in_order(std::size_t number) {
    const std::vector<PostedReceive>& receives = order_->receives;
    for (; next_receive_ < receives.size() && receives[next_receive_].before <= number;
         ++next_receive_) {
      post_receive(receives[next_receive_].step);
    }
    if (order_->arrivals.empty()) {
      settle_sends();
    }
    Tensor input = take_input(number);
    release_sends(number);
    return input;
  }

  // Posts receives until `count` are posted.
  void post_receives(std::size_t count) {
    for (; next_receive_ < steps_.size() && receives_.size() < count; ++next_receive_) {
      post_receive(next_receive_);
    }
  }

  // Does nothing if the step needs no message from another rank.
  void post_receive(std::size_t number) {
    const auto from = message_into(steps_[number], runner_.shape_, stage_);
    if (from && from->peer != stage_) {
      Transfer& receive = receives_[number];
      receive.tensor =
          Tensor(runner_.tools_.context.exchange(), runner_.activation_, runner_.dtype_);
      receive.pending = runner_.tools_.pp.recv(receive.tensor.view(), from->peer, tag(*from),
                                               &runner_.tools_.context.stream());
    }
  }

  // Returns the input of a step, for which it waits; an empty tensor if the step needs none.
  Tensor take_input(std::size_t number) {
    const auto from = message_into(steps_[number], runner_.shape_, stage_);
    if (!from) {
      return Tensor();
    }
    if (from->peer == stage_) {
      const auto own = own_.extract(from->message);
      check(!own.empty(), "a step comes after the one that it needs");
      return std::move(own.mapped());
    }
    const auto receive = receives_.find(number);
    check(receive != receives_.end(), "a receive is posted before the step that needs it");
    {
      const StreamTimer timer(runner_.tools_.context.stream(), runner_.timings_.wait);
      const SpanTimer span(runner_.tools_.spans, SpanKind::stages, name_of(from->message.kind),
                           detail_of(*from));
      receive->second.pending.wait(runner_.tools_.context.stream());
    }
    Tensor input = std::move(receive->second.tensor);
    receives_.erase(receive);
    return input;
  }

  Tensor compute(const PipelineStep& step, Tensor input) {
    const std::int64_t m = step.micro_batch;
    switch (step.kind) {
      case Kind::forward:
        return work_.forward(step.chunk, m, std::move(input));
      case Kind::backward:
        return work_.backward(step.chunk, m, std::move(input));
      case Kind::backward_input:
        return work_.backward_input(step.chunk, m, std::move(input));
      case Kind::backward_weight:
        work_.backward_weight(step.chunk, m);
        break;
      case Kind::tie:
        work_.tie(m, std::move(input));
        break;
    }
    return Tensor();
  }

  void pass_on(const std::optional<Addressed>& to, Tensor tensor) {
    check(to.has_value() != tensor.empty(), "a stage gives a tensor where the next one needs it");
    if (!to) {
      return;
    }
    check(tensor.shape() == runner_.activation_ && tensor.dtype() == runner_.dtype_,
          "tensors between stages have the same shape and type");
    if (to->peer == stage_) {
      own_.emplace(to->message, std::move(tensor));
      return;
    }
    sends_.push_back({std::move(tensor), Pending(),
                      knows_arrivals() ? order_->arrivals[next_send_++] : steps_.size()});
    Transfer& send = sends_.back();
    const SpanTimer span(runner_.tools_.spans, SpanKind::send, name_of(to->message.kind),
                         detail_of(*to));
    send.pending = runner_.tools_.pp.send(send.tensor.view(), to->peer, tag(*to),
                                          &runner_.tools_.context.stream());
  }

  void wait_for_sends() {
    const StreamTimer timer(runner_.tools_.context.stream(), runner_.timings_.wait);
    const SpanTimer span(runner_.tools_.spans, SpanKind::stages, "waiting for sends");
    for (Transfer& send : sends_) {
      send.pending.wait(runner_.tools_.context.stream());
    }
    sends_.clear();  // later work on the stream may use their memory
  }

  // Frees the tensors that have been sent, and throws if a send failed.
  void settle_sends() {
    std::erase_if(sends_, [](Transfer& send) {
      const bool done = send.pending.done();
      if (done) {
        send.pending.wait();
      }
      return done;
    });
  }

  // Frees the tensors that have arrived before the step's input did. The wait takes no time.
  void release_sends(std::size_t step) {
    std::erase_if(sends_, [&](Transfer& send) {
      const bool arrived = send.arrival <= step;
      if (arrived) {
        send.pending.wait(runner_.tools_.context.stream());
      }
      return arrived;
    });
  }

  bool knows_arrivals() const { return order_ != nullptr && !order_->arrivals.empty(); }

  void note(const TimedStep& timed) {
    runner_.timings_.compute_seconds += timed.end - timed.start;
    runner_.timings_.timeline.push_back(timed);
  }

  static SpanDetail detail_of(const Addressed& moved) {
    return {moved.message.micro_batch, moved.message.chunk, moved.peer};
  }

  int tag(const Addressed& to) const { return tag_of(to.message, runner_.shape_); }

  PipelineRunner& runner_;
  std::span<const PipelineStep> steps_;
  StageWork& work_;
  const TransferOrder* order_;
  std::size_t next_send_ = 0;  // the number of the next send in order_->arrivals
  int stage_;
  Stopwatch watch_;
  std::map<std::size_t, Transfer> receives_;  // posted, by the number of their steps
  std::size_t next_receive_ = 0;  // in order_->receives, or the first step that was not considered
  std::deque<Transfer> sends_;    // in flight
  std::map<PipelineMessage, Tensor> own_;  // messages from this rank to itself
};

PipelineRunner::PipelineRunner(const Tools& tools, const PipelineShape& shape,
                               const Shape& activation, DType dtype)
    : tools_(tools), shape_(shape), activation_(activation), dtype_(dtype) {
  check(tools.pp.size() == shape.stages, "every rank of the group is a stage");
}

void PipelineRunner::run(std::span<const PipelineStep> steps, StageWork& work,
                         const TransferOrder* order) {
  timings_.seconds = timings_.compute_seconds = 0;
  timings_.wait.clear();
  timings_.timeline.clear();
  Run(*this, steps, work, order).execute();
}

}  // namespace trireme
