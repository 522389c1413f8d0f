#include "src/train/parts/training_parts.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/checkpoint/step_keys.h"
#include "mpi/agreement.h"
#include "src/base/floating_point.h"
#include "src/base/units.h"
#include "src/compute/compute_threads.h"
#include "src/compute/device_choice.h"
#include "src/compute/kernel_choice.h"
#include "src/kernels/cuda_kernels.h"
#include "src/kernels/instructions.h"
#include "src/parallel/placement.h"
#include "src/train/memory/held_memory.h"
#include "src/train/numerics/self_check.h"
#include "src/train/run/fingerprint.h"
#include "src/train/saving/base_weights.h"
#include "src/train/saving/initial_weights.h"
#include "src/train/saving/kept_zeros.h"
#include "src/train/saving/teacher_weights.h"
#include "src/train/start/links.h"
#include "src/train/start/open_dataset.h"
#include "src/train/start/startup.h"
#include "src/train/start/tokenizer_identity.h"
#include "src/train/text/step_tokenizer.h"
#include "src/train/watch/replica_guard.h"

namespace trireme {
namespace {

// Returns the number of ranks on the host with the fewest.
int ranks_per_host(const std::vector<RankPlace>& places) {
  int ranks = places.front().local_size;
  for (const RankPlace& place : places) {
    ranks = std::min(ranks, place.local_size);
  }
  return ranks;
}

// Returns the number of compute threads: those asked for, or fewer if the environment allows no
// more.
int threads_of(const RunConfig& config, const RankPlace& place, Log& log) {
  const IntegerOrWord& threads = config.train.threads;
  const ComputeThreads found = measure_compute_threads(
      threads.is("auto") ? place.threads() : static_cast<int>(threads.integer));
  for (const std::string& warning : found.warnings) {
    log.warning(warning);
  }
  return found.threads;
}

// Checkpoints in memory need a node folder, which outlives the ranks. Without one, turns them off.
RunConfig usable_config(RunConfig config, const TrainingHost& host) {
  const std::int64_t has_folder = host.node.folder.empty() ? 0 : 1;
  if (config.checkpoint.uses_memory() &&
      all_reduce_value(host.world, has_folder, ReduceOp::min) == 0) {
    config.checkpoint.memory_every = {};
    if (host.world.rank() == 0) {
      host.log.warning(
          "checkpoint.memory_every is set, but TRIREME_NODE_DIR is not set on every rank: saving "
          "to "
          "disk only; start the run with trireme launch to save to memory as well");
    }
  }
  // Partner copies need more than one node.
  if (config.checkpoint.uses_memory() && config.checkpoint.partner) {
    config.checkpoint.partner = map_nodes(host.world, host.node).ranks.size() > 1;
  }
  return config;
}

const Kernels& kernels_of(const RunConfig& config, Device device) {
  return config.train.attends_by_cudnn() ? cuda_kernels(CudaAttention::cudnn) : kernels_for(device);
}

}  // namespace

TrainingParts::TrainingParts(const RunConfig& the_config, const TrainingHost& the_host,
                             const std::optional<StartPoint>& start)
    : config(with_teacher(usable_config(the_config, the_host), the_host.world)),
      host(the_host),
      world(host.world),
      context(host.device, kernels_of(config, host.device),
              threads_of(config, host.places.at(static_cast<std::size_t>(world.rank())), host.log),
              host.data.memory()),
      data(open_data(start)),
      layout(make_layout(config, world.size(), ranks_per_host(host.places))),
      memory(config, layout, host.places, world, host.device),
      trace(make_trace()),
      engine(naming_held_memory(
          context, [this] { return make_engine(); }, kLessInTraining)),
      choices(config, layout, world, host.device, host.log),
      stragglers(world, layout.grid.pp_rank(world.rank()), config.train.straggler_every) {
  naming_held_memory(
      context, [&] { build(start); }, kLessInTraining);
}

Engine TrainingParts::make_engine() {
  return {config,
          layout,
          {world, host.data, host.recorder, context, trace == nullptr ? nullptr : trace->spans()}};
}

void TrainingParts::build(const std::optional<StartPoint>& start) {
  host.recorder.set_dump_folder(config.run_dir / "logs", host.text.sealer);
  enter("start", config.deadline.start);
  if (const std::string why = why_no_graphs(config, engine.layout(), host.device);
      config.train.graphs == "on" && !why.empty()) {
    throw ConfigError(fmt::format("train.graphs is on, but {}; use auto", why));
  }
  if (!start) {
    say_what_starts();
    if (host.links != nullptr && host.device.kind == DeviceKind::cuda) {
      check_links(config.comm_require, *host.links, world, host.log);
    }
    if (config.self_check) {
      check_kernels(context, kernel_shapes(config, layout.grid.tp()));
    }
  }
  first_weights_ = config.checkpoint.init_from;
  std::optional<StepFolder> base;
  if (config.model.has_frozen()) {
    base = find_initial_step("checkpoint.init_from", config.checkpoint.init_from, world);
  }
  if (!start || !start->is_replay()) {
    energy = std::make_unique<RunEnergy>(world, host.devices, host.places, host.counters);
  }
  make_checkpoints(energy == nullptr ? nullptr : host.origin, base);
  if (base) {
    first_weights_ = base->path;
    load_base(std::move(*base), !start);
  }
  if (config.distill.is_on()) {
    load_teacher(!start);
  }
  if (start) {
    resume_at(*start);
  } else {
    resume();
    say_kept_zeros();
  }
  if (!start || !start->is_replay()) {
    open_validation_sets();
    checkpoints->check_writing();
  }
  bind_label(start, checkpoints->label());
  choices.prepare(RunningCeiling::products(config.compute_dtype()));
  memory.note_device_use();  // includes the memory that choosing algorithms took
  choices.close();
  make_loader();
  if (start && start->is_replay()) {
    return;
  }
  ceiling.emplace(context, config.compute_dtype(), world);
  if (world.rank() == 0) {
    make_metrics();
  }
}

TrainingParts::~TrainingParts() {
  // After an error the wait is short, so that its message appears soon.
  const double limit = std::uncaught_exceptions() > 0 ? 0.2 : 0.8 * config.deadline.checkpoint;
  if (checkpoints != nullptr && !checkpoints->quiet_within(std::chrono::duration<double>(limit))) {
    host.log.warning(fmt::format("{} hangs or is very slow: abandoning the unfinished writes",
                                 config.checkpoint_dir().string()));
    (void)checkpoints.release();
  }
}

std::unique_ptr<StepTrace> TrainingParts::make_trace() {
  if (config.trace == 0) {
    return nullptr;
  }
  return std::make_unique<StepTrace>(StepTrace::Parts{
      config.trace, layout.grid, RunDirectory(config.run_dir).trace(), host.recorder, world,
      host.log, context.device().kind == DeviceKind::cuda ? &context.stream() : nullptr,
      device_text(context.device()), host.text.sealer});
}

void TrainingParts::say_what_starts() {
  check_same_kernels(world, kernels_text(context.kernels().name), config.reproducibility);
  log_ranks(host.places, world, context.threads(), context.kernels().name, host.log);
  if (host.device.kind == DeviceKind::cuda) {
    host.log.info(fmt::format("rank {} computes on {}", world.rank(), device_text(host.device)));
  }
  if (world.rank() == 0) {
    warn_of_lesser_instructions(context.kernels().name, host.log);
    log_layout();
    log_graphs();
  }
  memory.log_predicted(host.log);
}

void TrainingParts::log_layout() {
  const std::vector<std::string> lines = describe_layout(layout, config);
  host.log.table(lines.front(), {lines.begin() + 1, lines.end()});
  host.log.event("layout", {{"dp", layout.grid.dp()},
                            {"tp", layout.grid.tp()},
                            {"pp", layout.grid.pp()},
                            {"zero", layout.zero},
                            {"micro_batches_per_replica", layout.shape.micro_batches},
                            {"schedule", name_of(layout.schedule)},
                            {"sequence_parallel", layout.sequence_parallel}});
  if (config.parallel.placement == "print") {
    for (const std::string& line : describe_placement(layout.grid, host.places)) {
      host.log.info(line);
    }
  }
}

void TrainingParts::log_graphs() {
  if (host.device.kind != DeviceKind::cuda) {
    return;
  }
  const std::string why = why_no_graphs(config, engine.layout(), host.device);
  host.log.info(why.empty() ? "forward and backward of micro-batches are recorded as CUDA graphs"
                            : fmt::format("no CUDA graphs: {}", why));
  host.log.event("graphs", {{"used", why.empty()}, {"why_not", why}});
}

// Warns once if a library keeps changing the rounding mode. Changes before the first call do not
// count: loading libraries causes some, and the measurement of the compute threads reports others.
void TrainingParts::warn_of_arithmetic() {
  const std::int64_t found = floating_point_restorations();
  if (found > restorations_.value_or(found) && !std::exchange(warned_of_arithmetic_, true)) {
    host.log.warning(
        "a library changes how this program rounds or underflows while it runs (look at LD_PRELOAD "
        "and at libraries built with -ffast-math): set back to the default before each use");
  }
  restorations_ = found;
}

void TrainingParts::enter(const char* phase, double deadline_seconds) {
  restore_floating_point();
  warn_of_arithmetic();
  host.status.phase = phase;
  host.recorder.enter_phase(phase);
  host.status.step = counters.step;
  engine.set_deadline(std::chrono::duration<double>(deadline_seconds));
  const auto shown = parse_progress_phase(phase);
  if (host.progress != nullptr && shown) {
    host.progress->note(*shown, counters.step, deadline_seconds);
  }
}

void TrainingParts::make_checkpoints(const RunOrigin* origin,
                                     const std::optional<StepFolder>& base) {
  const TokenizerIdentity tokenizer = data.tokenizer();
  nlohmann::json numerics = numerics_fingerprint(config, context.kernels().name, layout.grid.dp(),
                                                 layout.grid.tp(), layout.sequence_parallel);
  choices.add_to(numerics);
  fingerprints = {JsonValue(config_fingerprint(config, data.digest(), describe(tokenizer))),
                  JsonValue(std::move(numerics)), JsonValue(nlohmann::json::object())};
  put_tokenizer(tokenizer, *fingerprints.extra);
  put_tokenizer_folder(tokenizer, data[0].folder(), *fingerprints.extra);
  if (base) {
    put_base(*base, *fingerprints.extra,
             config.model.lora.is_on() ? kBaseOfAdapters : kBaseOfModules);
  }
  check_allowed_fields(config.checkpoint.allow_change, *fingerprints.config);
  checkpoints = std::make_unique<TrainingCheckpoints>(TrainingCheckpoints::Parts{
      config, fingerprints, engine, world, host.log, host.node, host.mtbf_hours, host.audit, origin,
      host.keys, data.used(), host.access, [this] { return energy->used(); }});
}

void TrainingParts::load_base(StepFolder base, bool say) {
  enter("load", config.deadline.checkpoint);
  const std::string loaded =
      load_base_weights(std::move(base), config, engine, world, host.keys, begin_from_base());
  if (say && world.rank() == 0) {
    host.log.info(loaded);
  }
}

void TrainingParts::load_teacher(bool say) {
  enter("load", config.deadline.checkpoint);
  const std::string loaded =
      trireme::load_teacher(config, engine, world, host.keys, [&](const StepFolder& teacher) {
        checkpoints->begin_from(*teacher.manifest, teacher.path);
        run_on_root(world, [&] {
          check_tokenizer_of_teacher(teacher, data.tokenizer());
          return std::string();
        });
      });
  if (say && world.rank() == 0) {
    host.log.info(loaded);
  }
}

AdmitStep TrainingParts::begin_from_base() const {
  return [this](const StepFolder& base) {
    checkpoints->begin_from_base(
        base, run_on_root(world, [&] { return tokenizer_digest_in(base.path); }));
    const std::string warning =
        world.rank() == 0 ? warning_of_tokenizer(base, data.tokenizer()) : "";
    if (!warning.empty()) {
      host.log.warning(warning);
    }
  };
}

void TrainingParts::resume() {
  enter("load", config.deadline.checkpoint);
  if (const auto resumed = checkpoints->resume()) {
    counters = *resumed;
  } else {
    begin();
  }
  checkpoints->reserve();
  reserve_comparison(engine);
}

void TrainingParts::say_kept_zeros() {
  if (!config.optimizer.keep_zeros) {
    return;
  }
  const KeptZeros kept = count_kept_zeros(engine, world);
  if (world.rank() != 0) {
    return;
  }
  if (kept.zeros == 0) {
    host.log.warning(text_of(kept));
  } else {
    host.log.info(text_of(kept));
  }
}

void TrainingParts::begin() {
  engine.initialize(config.train.seed, !config.model.has_frozen());
  if (!config.checkpoint.init_from.empty() && !config.model.lora.is_on()) {
    std::vector<std::string> skipped;
    // The base was admitted already.
    const AdmitStep admit = config.model.has_frozen() ? AdmitStep() : begin_from_base();
    const std::string loaded =
        load_initial_weights(config, engine, world, first_weights_, host.keys, admit, skipped);
    for (const std::string& why : skipped) {  // empty on the other ranks
      host.log.warning(fmt::format("skipped {}", why));
    }
    if (world.rank() == 0) {
      host.log.info(loaded);
    }
  }
}

void TrainingParts::resume_at(const StartPoint& start) {
  enter("load", config.deadline.checkpoint);
  if (start.from_seed) {
    begin();
  } else if (const auto resumed = checkpoints->resume(start.step)) {
    counters = *resumed;
  } else {
    throw DataError(fmt::format("step {} is not complete in the nodes' memory", start.step));
  }
  if (!start.is_replay()) {
    leave_out(counters, *start.rewound_from, config.divergence.skip_batches);
    checkpoints->reserve();
    reserve_comparison(engine);
    checkpoints->save_again(counters);
  }
}

void TrainingParts::make_loader() {
  // The counters come from a checkpoint, which may have been forged.
  const BatchSchedule batches = config.batches();
  if (!batches.has_room_for(counters.batches() + config.train.steps)) {
    throw DataError(
        fmt::format("the checkpoint leaves out {} batches, which is more than a run can have",
                    counters.batches() - counters.step));
  }
  if (engine.replica().reads_tokens()) {
    loader = std::make_unique<Loader>(
        data.sources(), data.mixture(),
        LoaderPlan{.sequence = config.data.sequence,
                   .batches = batches,
                   .first_batch = counters.batches(),
                   .micro_batch = config.train.micro_batch,
                   .micros = [&whole = layout, rank = world.rank()](
                                 std::int64_t n) { return whole.micro_batches_of(rank, n); },
                   .steps = std::max<std::int64_t>(config.train.steps - counters.step, 0),
                   .memory = &context.staging(),
                   .separates_documents = config.data.separates_documents()},
        batches.before(counters.batches()));
  }
  step = std::make_unique<TrainStep>(engine, [this] { return loader->next(); });
}

}  // namespace trireme
