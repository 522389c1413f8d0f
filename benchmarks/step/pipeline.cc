#include "benchmarks/step/pipeline.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <nlohmann/json.hpp>

#include "benchmarks/progress.h"
#include "benchmarks/report.h"
#include "benchmarks/sampling.h"
#include "benchmarks/step/pipeline_bubble.h"
#include "mpi/session/backend.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

// SleepingStage sleeps instead of computing.
class SleepingStage : public StageWork {
 public:
  struct Milliseconds {
    double forward = 0;
    double input = 0;
    double weight = 0;
  };
  // each: times per chunk. activation: shape of an f32 tensor.
  SleepingStage(Pool& pool, const PipelineShape& shape, int stage, const Milliseconds& each,
                const Shape& activation)
      : pool_(pool), shape_(shape), stage_(stage), each_(each), activation_(activation) {}

  Tensor forward(int chunk, std::int64_t, Tensor) override {
    spend(each_.forward);
    return shape_.virtual_stage(stage_, chunk) == shape_.virtual_stages() - 1 ? Tensor() : made();
  }
  Tensor backward(int chunk, std::int64_t, Tensor) override {
    spend(each_.input + each_.weight);
    return gradient(chunk);
  }
  Tensor backward_input(int chunk, std::int64_t, Tensor) override {
    spend(each_.input);
    return gradient(chunk);
  }
  void backward_weight(int, std::int64_t) override { spend(each_.weight); }
  Tensor embedding_gradient(std::int64_t) override { return Tensor(); }
  void tie(std::int64_t, Tensor) override {}

 private:
  static void spend(double milliseconds) {
    std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
  }
  Tensor made() { return Tensor(pool_, activation_, DType::f32); }
  Tensor gradient(int chunk) {
    return shape_.virtual_stage(stage_, chunk) == 0 ? Tensor() : made();
  }

  Pool& pool_;
  PipelineShape shape_;
  int stage_;
  Milliseconds each_;
  Shape activation_;
};

Json pipeline_params(const BenchPipelineOptions& options, const PipelineShape& shape,
                     std::size_t rounds) {
  return {{"schedule", options.schedule},
          {"stages", shape.stages},
          {"chunks", shape.chunks},
          {"micro_batches", shape.micro_batches},
          {"forward_ms", options.forward_ms},
          {"input_ms", options.input_ms},
          {"weight_ms", options.weight_ms},
          {"bytes", options.bytes},
          {"rounds", rounds},
          {"backend", options.backend}};
}

}  // namespace

Json bench_pipeline(const BenchPipelineOptions& options, MpiSession& session) {
  if (session.world().size() < 2) {
    throw ConfigError(
        "bench pipeline measures a pipeline of one stage per rank, at least two: start it with "
        "mpirun -n 2 or srun -n 2");
  }
  const PipelineSchedule schedule = parse_pipeline_schedule(options.schedule);
  const PipelineShape shape{session.world().size(), options.chunks, options.micro_batches};
  const Shape activation{1, 1, std::max<std::int64_t>(options.bytes / size_of(DType::f32), 1)};
  const std::vector<PipelineStep> steps = make_schedule(schedule, shape, session.world().rank());
  const auto pp = session.make_world(parse_backend(options.backend));
  DeviceContext context(Device::cpu(), 1, pp->memory());
  const double transfer =
      measure_transfer(*pp, context.exchange(), activation.elements() * size_of(DType::f32));
  SleepingStage stage(context.exchange(), shape, pp->rank(),
                      {options.forward_ms / options.chunks, options.input_ms / options.chunks,
                       options.weight_ms / options.chunks},
                      activation);
  PipelineRunner runner({*pp, context}, shape, activation, DType::f32);
  PipelineBubble bubble(schedule, shape);
  std::vector<double> seconds;
  BenchProgress progress("bench pipeline", options.rounds + 1, pp->rank() == 0);
  progress.stage("one warm-up round, then the timed rounds");
  pp->barrier().wait();
  runner.run(steps, stage);
  progress.done();
  const auto rule = StopRule::count_or_duration(options.rounds, options.duration);
  for (Sampling sampling(rule, pp.get()); sampling.more(seconds.size());) {
    pp->barrier().wait();
    runner.run(steps, stage);
    bubble.add(runner.timings());
    seconds.push_back(runner.timings().seconds);
    progress.done();
  }
  progress.finish();
  const PipelineBubble::Fractions fractions = bubble.fractions(*pp, transfer);
  const auto by_rank = multiplied(gather_by_rank(*pp, seconds), 1e3);
  const std::vector<double> step_ms = slowest(by_rank);
  return {{"name", "pipeline"},
          {"params", pipeline_params(options, shape, seconds.size())},
          {"metrics",
           {{"step_ms", median(step_ms)},
            {"transfer_ms", 1e3 * transfer},
            {"bubble_fraction", fractions.measured},
            {"bubble_predicted", fractions.predicted},
            {"bubble_replayed", fractions.replayed},
            {"ratio", fractions.measured / fractions.predicted}}},
          {"measurement", to_json({.warmup = 1,
                                   .stop = rule,
                                   .sample = "a step of all micro-batches",
                                   .synchronized_by = "a barrier before each step"})},
          {"samples", {{"step_ms", samples_json(step_ms, by_rank)}}}};
}

}  // namespace trireme
