#include "src/train/engine/engine.h"

#include "src/compute/counting_device.h"
#include "src/train/engine/tied_embedding.h"

namespace trireme {

Engine::Engine(const RunConfig& config, Layout layout, const Tools& tools)
    : config_(config),
      layout_(std::move(layout)),
      tools_(tools),
      dp_(data_group(layout_.grid.dp_color(tools.world.rank()),
                     layout_.grid.dp_rank(tools.world.rank()), "dp")),
      tp_(data_group(layout_.grid.tp_color(tools.world.rank()),
                     layout_.grid.tp_rank(tools.world.rank()), "tp")),
      pp_(data_group(layout_.grid.pp_color(tools.world.rank()),
                     layout_.grid.pp_rank(tools.world.rank()), "pp")),
      dp_control_(
          tools.world.split(layout_.grid.dp_color(tools.world.rank()), dp_->rank(), "dp control")),
      tp_control_(
          tools.world.split(layout_.grid.tp_color(tools.world.rank()), tp_->rank(), "tp control")),
      siblings_(tools.world.split(layout_.grid.dp_rank(tools.world.rank()), tools.world.rank(),
                                  "replica")),
      group_(*tp_, tools.context, tools.spans),
      chunks_(make_chunks()),
      fp8_(config, chunks_, tools.world),
      teacher_(make_teacher()),
      replica_({config, layout_, chunks_, fp8_, teacher_.get(), *pp_, group_, tools.recorder,
                tools.context, tools.spans}) {
  pp_->prepare_transfers();
}

// NCCL's own sums have one order for one layout, and adding in the order of the tree costs it more
// steps; other transports add in that order at no cost.
std::unique_ptr<Communicator> Engine::data_group(int color, int key, const char* name) {
  const bool free_order =
      layout_.reproducibility == Reproducibility::fast ||
      (layout_.reproducibility == Reproducibility::layout && acts_as_cuda(tools_.context.device()));
  tools_.data.set_sum_order(free_order ? SumOrder::any : SumOrder::tree);
  return tools_.data.split(color, key, name);
}

ModelChunks Engine::make_chunks() {
  const ZeroTools tools{*dp_, tools_.context, tools_.spans};
  const ZeroState::Options options{.level = layout_.zero,
                                   .reproducibility = layout_.reproducibility,
                                   .bucket_bytes = config_.parallel.bucket_bytes,
                                   .borders = {},
                                   .optimizer = config_.optimizer.options()};
  ModelChunks chunks;
  for (int chunk = 0; chunk < layout_.shape.chunks; ++chunk) {
    chunks.push_back(std::make_unique<ModelChunk>(config_.model,
                                                  layout_.slice(tools_.world.rank(), chunk),
                                                  config_.compute_dtype(), tools, options));
  }
  return chunks;
}

std::unique_ptr<Teacher> Engine::make_teacher() {
  if (!config_.distill.is_on() || !layout_.has_head(tools_.world.rank())) {
    return nullptr;
  }
  return std::make_unique<Teacher>(config_.distill, config_.compute_dtype(), tools_.context);
}

void Engine::set_deadline(std::chrono::duration<double> deadline) {
  for (Communicator* group : {&tools_.world, &tools_.data, dp_.get(), tp_.get(), pp_.get(),
                              dp_control_.get(), tp_control_.get(), siblings_.get()}) {
    group->set_deadline(deadline);
  }
}

void Engine::initialize(std::uint64_t seed, bool with_frozen) {
  for (const auto& chunk : chunks_) {
    chunk->state.initialize(seed, with_frozen);
  }
  refresh_tied_embedding(*chunks_.front(), *chunks_.back(), *pp_, tools_.context.stream());
}

void Engine::masters_changed() {
  for (const auto& chunk : chunks_) {
    chunk->state.masters_changed();
  }
  refresh_tied_embedding(*chunks_.front(), *chunks_.back(), *pp_, tools_.context.stream());
}

// Only the last stages have the losses; they broadcast them to their replicas.
double Engine::evaluate(const Dataset& dataset, const EvaluationPlan& plan) {
  EvaluationPlan own = plan;
  // With several chunks per rank, a group of micro-batches goes through one chunk after another and
  // keeps its tokens until the last (make_forward_schedule).
  own.in_flight = layout_.shape.chunks > 1 ? layout_.shape.stages : 1;
  own.memory = &tools_.context.staging();
  own.separates_documents = config_.data.separates_documents();
  const Evaluation evaluation = trireme::evaluate(
      dataset, own, *dp_control_,
      [this](const TokenSource& tokens, std::int64_t batch, std::int64_t count, double* losses) {
        // The samples that are left over fit into the memory of a whole micro-batch.
        const bool is_smaller = batch < config_.train.micro_batch;
        const Pool::Lending activations(tools_.context.activations(), is_smaller);
        const Pool::Lending exchanged(tools_.context.exchange(), is_smaller);
        replica_.evaluate(tokens, batch, count, losses);
      });
  check_samples_read(evaluation, tools_.world);
  double loss = evaluation.loss;
  const int first_of_last_stage = (layout_.grid.pp() - 1) * layout_.grid.tp();
  siblings_->broadcast({&loss, 1, DType::f64}, first_of_last_stage).wait();
  return loss;
}

}  // namespace trireme
