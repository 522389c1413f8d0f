#include "src/app/bench/step.h"

#include <cmath>
#include <vector>

#include "src/app/bench/report.h"
#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/base/stopwatch.h"
#include "src/nn/model.h"
#include "src/nn/model_size.h"
#include "src/optim/gradient_norm.h"
#include "src/parallel/zero_state.h"
#include "src/train/ceiling.h"
#include "src/train/model_presets.h"
#include "src/train/train_step.h"

namespace trireme {
namespace {

constexpr std::int64_t kCeilingSize = 2048;
constexpr int kCeilingRounds = 5;

// What of a rank is timed, and its parts.
struct Timings {
  std::vector<double> step;
  std::vector<double> backward;
  std::vector<double> exposed;
  std::vector<double> optimizer;
  std::vector<double> ceiling;
};

std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocab, int rank) {
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto bits = philox({static_cast<std::uint32_t>(i), 0, 0, 0},
                             philox_key(static_cast<std::uint64_t>(rank)))[0];
    tokens[i] = static_cast<std::int32_t>(bits % static_cast<std::uint32_t>(vocab));
  }
  return tokens;
}

class StepBench {
 public:
  StepBench(const BenchStepOptions& options, MpiSession& session)
      : options_(options),
        world_(session.world()),
        config_(preset_model_config(options.model)),
        dtype_(options.precision == "bf16" ? DType::bf16 : DType::f32),
        stream_({}, options.threads > 0 ? options.threads : session.place().threads()),
        parameters_(pool_, dtype_),
        model_(config_, parameters_) {
    state_ = std::make_unique<ZeroState>(
        parameters_, ZeroTools{world_, kernels_, stream_, pool_, pool_},
        ZeroState::Options{
            .micro_batches = options.micro_batches * world_.size(), .borders = {}, .adamw = {}});
    state_->initialize(1);
    const std::int64_t tokens = options.micro_batch * options.sequence;
    ids_ = random_tokens(tokens, config_.vocab, world_.rank());
    targets_ = random_tokens(tokens, config_.vocab, world_.rank() + world_.size());
  }

  // The ceiling is measured between the steps, so that both see the same neighbours.
  Timings run() {
    Timings timings;
    for (int round = 0; round <= options_.rounds; ++round) {
      world_.barrier().wait();
      const double ceiling =
          measure_product_rate(kernels_, stream_, pool_, dtype_, kCeilingSize, kCeilingRounds)
              .median;
      world_.barrier().wait();
      one_step(round + 1, round > 0 ? &timings : nullptr);
      if (round > 0) {
        timings.ceiling.push_back(ceiling);
      }
    }
    return timings;
  }

  nlohmann::ordered_json result(const Timings& timings) const;

 private:
  void one_step(std::int64_t number, Timings* timings) {
    const std::int64_t tokens = options_.micro_batch * options_.sequence;
    Run run{.kernels = kernels_,
            .stream = stream_,
            .pool = pool_,
            .parameters = parameters_,
            .training = true,
            .dropout = {}};
    const Stopwatch watch;
    GradientReducer& reducer = state_->reducer();
    reducer.begin_step();
    for (const std::int64_t m : reducer.micro_batches()) {
      run.gradients = &reducer.open(m);
      model_.forward_backward({options_.micro_batch,
                               options_.sequence,
                               {ids_.data(), tokens, DType::i32},
                               {targets_.data(), tokens, DType::i32}},
                              1.0F / static_cast<float>(tokens), run);
    }
    const double backward = watch.seconds();
    reducer.finish_step();
    const Stopwatch update;
    ExactSum squares;
    state_->add_squares(squares);
    const double clip = clip_factor(std::sqrt(squares.value()), 1.0);
    state_->update({.step = number, .lr = 1e-4F, .gradient_scale = static_cast<float>(clip)});
    if (timings != nullptr) {
      timings->step.push_back(watch.seconds());
      timings->backward.push_back(backward);
      timings->exposed.push_back(reducer.timings().exposed_seconds);
      timings->optimizer.push_back(update.seconds());
    }
  }

  BenchStepOptions options_;
  Communicator& world_;
  ModelConfig config_;
  DType dtype_;
  const Kernels& kernels_ = kernels_for({});
  Stream stream_;
  Pool pool_{Device{}};
  ParameterStore parameters_;
  Model model_;
  std::unique_ptr<ZeroState> state_;
  std::vector<std::int32_t> ids_;
  std::vector<std::int32_t> targets_;
};

nlohmann::ordered_json StepBench::result(const Timings& timings) const {
  // A step is as slow as its slowest rank; the ceiling is what all ranks reach together.
  const double step = all_reduce_value(world_, median(timings.step), ReduceOp::max);
  const double ceiling = all_reduce_value(world_, median(timings.ceiling), ReduceOp::sum);
  const double tokens = static_cast<double>(options_.micro_batch * options_.micro_batches *
                                            options_.sequence * world_.size());
  const double flops = flops_per_token(config_, options_.sequence) * tokens / step;
  // Masters, two moments, one gradient: 16 bytes a parameter; and what the formulas say of the
  // rest.
  const std::int64_t expected =
      16 * parameter_count(config_) +
      activation_bytes(config_, options_.micro_batch, options_.sequence, dtype_);
  const std::int64_t resident = peak_resident_bytes();
  return {{"name", "step"},
          {"params",
           {{"model", options_.model},
            {"precision", options_.precision},
            {"micro_batch", options_.micro_batch},
            {"micro_batches", options_.micro_batches},
            {"sequence", options_.sequence},
            {"ranks", world_.size()},
            {"threads", stream_.threads()},
            {"kernels", kernels_.name},
            {"rounds", options_.rounds}}},
          {"metrics",
           {{"tokens_per_s", tokens / step},
            {"step_ms", 1e3 * step},
            {"forward_backward_ms", 1e3 * median(timings.backward)},
            {"comm_exposed_ms", 1e3 * median(timings.exposed)},
            {"optimizer_ms", 1e3 * median(timings.optimizer)},
            {"flop_convention", "6N + 6LCT, causal"},
            {"flops_per_s", flops},
            {"ceiling_flops_per_s", ceiling},
            {"fraction_of_ceiling", flops / ceiling},
            {"memory_bytes", resident},
            {"memory_expected_bytes", expected},
            {"memory_ratio", static_cast<double>(resident) / static_cast<double>(expected)}}},
          {"step_seconds", timings.step},
          {"ceiling_flops", timings.ceiling}};
}

}  // namespace

nlohmann::ordered_json bench_step(const BenchStepOptions& options, AppContext& context) {
  const std::int64_t longest = preset_model_config(options.model).context;
  if (options.sequence > longest) {
    throw ConfigError(fmt::format("--sequence {}: the context of {} is {} tokens", options.sequence,
                                  options.model, longest));
  }
  StepBench bench(options, context.session());
  return bench.result(bench.run());
}

}  // namespace trireme
