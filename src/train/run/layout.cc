#include "src/train/run/layout.h"

#include <numeric>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/parallel/gradient_rounds.h"
#include "src/train/run/batch_ramp_text.h"
#include "src/train/run/run_config_checks.h"

namespace trireme {
namespace {

std::optional<int> degree(const IntegerOrWord& value) {
  return value.is("auto") ? std::nullopt : std::optional(static_cast<int>(value.integer));
}

Reproducibility reproducibility_of(const std::string& word) {
  return word == "elastic"  ? Reproducibility::elastic
         : word == "layout" ? Reproducibility::layout
                            : Reproducibility::fast;
}

Recompute recompute_of(const TrainConfig& c) {
  const Recompute::Kind kind = c.recompute == "full"        ? Recompute::Kind::full
                               : c.recompute == "selective" ? Recompute::Kind::selective
                                                            : Recompute::Kind::none;
  return {kind, c.recompute_every};
}

// Looking up rows and adding their gradients moves 20 bytes per channel and token (two f32 forward,
// three backward). Moving a byte takes about as long as 16 FLOPs of a matrix product.
constexpr double kEmbeddingFlopsAChannel = 20 * 16;

// Returns how many times a block's half computes as much as forward: a recomputed one runs that
// twice.
double passes_of(BackwardWork work, bool again) {
  if (work == BackwardWork::none) {
    return 1;
  }
  return (work == BackwardWork::all ? 3 : 2) + (again ? 1 : 0);
}

// Returns the FLOPs of forward and backward per token.
ModelCosts costs_of(const RunConfig& config, const Recompute& recompute) {
  const ForwardFlops flops = forward_flops(config.model, config.data.sequence);
  const std::vector<BackwardWork> works = backward_work(config.model);
  ModelCosts costs;
  for (std::int64_t block = 0; block < config.model.layers; ++block) {
    const bool again = recompute.kind == Recompute::Kind::full && block % recompute.every == 0;
    const auto attention = works.begin() + 2 * block;
    costs.units.push_back(passes_of(attention[0], again) * flops.attention);
    costs.units.push_back(passes_of(attention[1], again) * flops.mlp);
  }
  costs.embedding = kEmbeddingFlopsAChannel * static_cast<double>(config.model.hidden);
  costs.head = 3 * flops.head;
  return costs;
}

// Evaluates parallel.sequence: auto divides the tokens among the ranks wherever possible, to save
// memory.
bool shares_rows(const RunConfig& config, int tp) {
  const bool divides = config.data.sequence % tp == 0;
  if (config.parallel.sequence == "on" && !divides) {
    throw ConfigError(fmt::format(
        "parallel.sequence on: data.sequence {} % tp {} = {}: the ranks of a tensor-parallel group "
        "cannot share the tokens equally; use a multiple of {}, or set parallel.sequence to auto",
        config.data.sequence, tp, config.data.sequence % tp, tp));
  }
  return tp > 1 && divides && config.parallel.sequence != "off";
}

// Checks that every stage of the ramp suits the layout. The caller has checked the largest batch.
void check_ramp_fits(const RunConfig& config, const Layout& layout) {
  const BatchSchedule batches = config.batches();
  const bool in_groups = layout.schedule == PipelineSchedule::interleaved;
  const int stages = in_groups ? layout.shape.stages : 1;
  const std::int64_t unit = config.train.micro_batch * layout.grid.dp() * stages;
  if (const auto stage = batches.stage_not_multiple_of(unit)) {
    throw ConfigError(fmt::format(
        "train.batch_ramp: {} has to be a multiple of train.micro_batch {} x dp {}{} = {}; {}",
        describe_stage(batches, *stage), config.train.micro_batch, layout.grid.dp(),
        in_groups ? fmt::format(" x pp {} (schedule interleaved)", stages) : "", unit,
        nearest_sizes(batches, *stage, unit)));
  }
}

// Returns the layers of a stage for the log: "0-11", or "0-8, attention of 9" if the stage ends in
// the middle of layer 9.
std::string layers_text(const UnitRange& range) {
  const std::int64_t first = (range.lo + 1) / 2;  // blocks [first, end) are complete
  const std::int64_t end = range.hi / 2;
  std::vector<std::string> parts;
  if (range.lo % 2 == 1) {
    parts.push_back(fmt::format("MLP of {}", range.lo / 2));
  }
  if (first < end) {
    parts.push_back(end - first == 1 ? fmt::format("{}", first)
                                     : fmt::format("{}-{}", first, end - 1));
  }
  if (range.hi % 2 == 1) {
    parts.push_back(fmt::format("attention of {}", end));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Returns "2 to " if a ramp begins with 2 micro-batches per replica, or "" without a ramp.
std::string ramp_prefix(const RunConfig& config, int dp) {
  const BatchSchedule batches = config.batches();
  return batches.stages() == 1
             ? ""
             : fmt::format("{} to ", batches.size_of_stage(0) / config.train.micro_batch / dp);
}

// Returns "embedding, layers 0-5".
std::string stage_text(const Layout& layout, int stage) {
  std::vector<std::string> chunks;
  for (int chunk = 0; chunk < layout.shape.chunks; ++chunk) {
    const int number = layout.shape.virtual_stage(stage, chunk);
    chunks.push_back(layers_text(layout.layers[static_cast<std::size_t>(number)]));
  }
  return fmt::format("{}layers {}{}", stage == 0 ? "embedding, " : "", fmt::join(chunks, " | "),
                     stage == layout.grid.pp() - 1 ? ", head" : "");
}

}  // namespace

std::vector<std::int64_t> Layout::micro_batches_of(int rank, std::int64_t micro_batches) const {
  return gradient_rounds(micro_batches, grid.dp(), zero, reproducibility)
      .numbers(grid.dp_rank(rank), grid.dp());
}

ModelSlice Layout::slice(int rank, int chunk) const {
  const int stage = shape.virtual_stage(grid.pp_rank(rank), chunk);
  const UnitRange& range = layers[static_cast<std::size_t>(stage)];
  return {range.lo, range.hi, grid.tp_rank(rank), grid.tp(), recompute};
}

Layout make_layout(const RunConfig& config, int world_size, int ranks_per_host) {
  const ParallelConfig& p = config.parallel;
  Layout layout{.grid = ProcessGrid(world_size,
                                    {degree(p.dp), degree(p.tp), degree(p.pp),
                                     [&](int tp) { return tensor_degree_works(config.model, tp); }},
                                    ranks_per_host),
                .schedule = parse_pipeline_schedule(p.schedule),
                .shape = {},
                .layers = {},
                .zero = p.zero,
                .recompute = recompute_of(config.train),
                .reproducibility = reproducibility_of(config.reproducibility)};
  const ProcessGrid& grid = layout.grid;
  layout.sequence_parallel = shares_rows(config, grid.tp());
  tensor_share(config.model, 0, grid.tp());
  check_fp8_shapes(config, grid.tp());
  check_reduction(config.micro_batches(), grid.dp(), layout.reproducibility);
  layout.shape = {.stages = grid.pp(),
                  .chunks = p.virtual_stages,
                  .micro_batches = config.micro_batches() / grid.dp(),
                  .tied = config.model.trains_tied_matrix()};
  if (layout.shape.chunks > 1 && layout.shape.stages == 1) {
    throw ConfigError(fmt::format(
        "parallel.virtual_stages {} needs a parallel.pp of at least 2, but parallel.pp is 1: set "
        "virtual_stages to 1 or raise pp",
        layout.shape.chunks));
  }
  check_pipeline(layout.schedule, layout.shape);
  check_ramp_fits(config, layout);
  layout.layers = balance_stages(costs_of(config, layout.recompute), layout.shape);
  return layout;
}

std::vector<std::string> describe_layout(const Layout& layout, const RunConfig& config) {
  const ProcessGrid& grid = layout.grid;
  std::vector<std::string> lines = {
      fmt::format("layout: dp {} x tp {} x pp {}, zero {}, {}{} per replica and step{}{}",
                  grid.dp(), grid.tp(), grid.pp(), layout.zero, ramp_prefix(config, grid.dp()),
                  counted(layout.shape.micro_batches, "micro-batch"),
                  layout.sequence_parallel ? ", sequence parallel" : "",
                  grid.pp() > 1 ? fmt::format(", schedule {}", name_of(layout.schedule)) : "")};
  if (grid.pp() == 1) {
    return lines;
  }
  const ModelCosts costs = costs_of(config, layout.recompute);
  const std::vector<double> work = rank_costs(costs, layout.layers, layout.shape.stages);
  const double total = std::accumulate(work.begin(), work.end(), 0.0);
  lines.push_back(fmt::format("{:>5} {:>13} {:>7}  {}", "stage", "ranks", "work", "holds"));
  for (int stage = 0; stage < grid.pp(); ++stage) {
    const int first = grid.rank_at(0, 0, stage);
    lines.push_back(fmt::format("{:>5} {:>13} {:>6.1f}%  {}", stage,
                                fmt::format("{}-{}", first, first + grid.dp() * grid.tp() - 1),
                                100 * work[static_cast<std::size_t>(stage)] / total,
                                stage_text(layout, stage)));
  }
  return lines;
}

}  // namespace trireme
