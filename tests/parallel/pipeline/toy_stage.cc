#include "tests/parallel/pipeline/toy_stage.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "src/parallel/pipeline/pipeline_message.h"
#include "src/parallel/pipeline/pipeline_runner.h"

namespace trireme {
namespace {

enum : int { kNone = -1, kActivation, kGradient, kEmbedding };

// The numbers are exact in f32, since they are below 2^24.
float element(int kind, int virtual_stage, std::int64_t micro_batch, std::int64_t i) {
  const std::int64_t name = (micro_batch * 64 + virtual_stage) * 3 + kind;
  return static_cast<float>((name * 7919 + i) % (1 << 24));
}

}  // namespace

ToyStage::ToyStage(Pool& pool, const PipelineShape& shape, int stage, const Shape& activation,
                   Hook hook)
    : pool_(pool), shape_(shape), stage_(stage), activation_(activation), hook_(std::move(hook)) {}

void ToyStage::enter(PipelineStep::Kind kind, int chunk, std::int64_t micro_batch) {
  steps_.push_back({kind, chunk, micro_batch});
  if (hook_) {
    hook_(steps_.back());
  }
}

Tensor ToyStage::make(int kind, int virtual_stage, std::int64_t micro_batch) {
  Tensor tensor(pool_, activation_, DType::f32);
  auto* out = as<float>(tensor.view());
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    out[i] = element(kind, virtual_stage, micro_batch, i);
  }
  return tensor;
}

void ToyStage::check_and_spoil(const Tensor& given, int kind, int virtual_stage,
                               std::int64_t micro_batch) {
  if (kind == kNone || given.empty()) {
    wrong_ += given.empty() == (kind == kNone) ? 0 : 1;
    return;
  }
  auto* in = as<float>(given.view());
  for (std::int64_t i = 0; i < given.elements(); ++i) {
    wrong_ += in[i] == element(kind, virtual_stage, micro_batch, i) ? 0 : 1;
    in[i] = -1;
  }
}

Tensor ToyStage::forward(int chunk, std::int64_t micro_batch, Tensor input) {
  enter(PipelineStep::Kind::forward, chunk, micro_batch);
  const int at = shape_.virtual_stage(stage_, chunk);
  check_and_spoil(input, at == 0 ? kNone : kActivation, at, micro_batch);
  return at == shape_.virtual_stages() - 1 ? Tensor() : make(kActivation, at + 1, micro_batch);
}

Tensor ToyStage::gradient(int chunk, std::int64_t micro_batch, const Tensor& doutput) {
  const int at = shape_.virtual_stage(stage_, chunk);
  const bool is_last = at == shape_.virtual_stages() - 1;
  check_and_spoil(doutput, is_last ? kNone : kGradient, at + 1, micro_batch);
  return at == 0 ? Tensor() : make(kGradient, at, micro_batch);
}

Tensor ToyStage::backward(int chunk, std::int64_t micro_batch, Tensor doutput) {
  enter(PipelineStep::Kind::backward, chunk, micro_batch);
  return gradient(chunk, micro_batch, doutput);
}

Tensor ToyStage::backward_input(int chunk, std::int64_t micro_batch, Tensor doutput) {
  enter(PipelineStep::Kind::backward_input, chunk, micro_batch);
  return gradient(chunk, micro_batch, doutput);
}

void ToyStage::backward_weight(int chunk, std::int64_t micro_batch) {
  enter(PipelineStep::Kind::backward_weight, chunk, micro_batch);
}

Tensor ToyStage::embedding_gradient(std::int64_t micro_batch) {
  ++embedding_gradients_;
  const bool follows = !steps_.empty() && sends_gradient(steps_.back().kind) &&
                       steps_.back().chunk == 0 && steps_.back().micro_batch == micro_batch;
  wrong_ += follows && stage_ == 0 ? 0 : 1;
  return make(kEmbedding, 0, micro_batch);
}

void ToyStage::tie(std::int64_t micro_batch, Tensor d) {
  enter(PipelineStep::Kind::tie, shape_.chunks - 1, micro_batch);
  check_and_spoil(d, kEmbedding, 0, micro_batch);
}

void run_toy(Communicator& pp, PipelineSchedule schedule, const PipelineShape& shape,
             const Shape& activation, int runs) {
  SCOPED_TRACE(fmt::format("{} p {} v {} m {} tied {}, stage {}", name_of(schedule), shape.stages,
                           shape.chunks, shape.micro_batches, shape.tied, pp.rank()));
  DeviceContext context(Device::cpu(), 1, pp.memory());
  const auto steps = make_schedule(schedule, shape, pp.rank());
  const TransferOrder order = transfer_order(make_schedules(schedule, shape), shape, pp.rank());
  PipelineRunner runner({pp, context}, shape, activation, DType::f32);
  for (int run = 0; run < runs; ++run) {
    ToyStage toy(context.exchange(), shape, pp.rank(), activation);
    runner.run(steps, toy, run % 2 == 0 ? nullptr : &order);
    EXPECT_EQ(toy.steps(), steps);
    EXPECT_EQ(toy.wrong(), 0);
    const bool embeds = shape.tied && shape.stages > 1 && pp.rank() == 0;
    EXPECT_EQ(toy.embedding_gradients(), embeds ? shape.micro_batches : 0);
    EXPECT_EQ(runner.timings().timeline.size(), steps.size());
  }
}

}  // namespace trireme
