#include "src/train/memory/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/memory/holding.h"
#include "mpi/nccl/nccl_world.h"
#include "src/base/units.h"
#include "src/device/cuda_device.h"
#include "src/kernels/cuda_kernels.h"
#include "src/train/memory/step_memory.h"

namespace trireme {
namespace {

// Bytes that libraries, threads and transports take after the start, as measured
// (docs/parallelism.md, Memory).
constexpr std::int64_t kLaterProgramBytes = std::int64_t{32} << 20;
// Buffers for reading a checkpoint back after it was written.
constexpr std::int64_t kReadBackBytes = std::int64_t{32} << 20;
// The sides of the products with which a start measures the rate of its devices
// (running_ceiling.h).
constexpr std::int64_t kCeilingSide = 4096;
constexpr std::int64_t kSimulatedCeilingSide = 1024;
// What CUDA, cuBLASLt and NCCL take of a GPU for their code and data once a run uses them: 0.95 to
// 1.03 GB with CUDA 13.0 on an H200 (docs/gpu.md).
constexpr std::int64_t kLibraryBytes = std::int64_t{1000} << 20;
constexpr std::size_t kMostLines = 16;

// Returns the bytes that kernels take: attention packs keys and values of all heads before it reads
// them, and the library of matrix products packs an operand.
std::int64_t kernel_workspace(const RunConfig& config, int tensor_ranks) {
  const std::int64_t rows = config.train.micro_batch * config.data.sequence;
  std::int64_t width = config.model.kv_heads * config.model.head_dim / tensor_ranks;
  if (config.distill.is_on()) {
    const ModelConfig& teacher = config.distill.read_model();
    width = std::max(width, teacher.kv_heads * teacher.head_dim);
  }
  return 2 * rows * width * size_of(config.compute_dtype());
}

// Returns the number of copies of a rank's blocks that exist for checkpoints. In the node's memory
// there are kMemorySlots, one of which is being written to disk. With partners, there are also the
// newest copy of another node and the next one, which is being received; with encryption, what will
// be encrypted to a slot. On disk, a copy is encrypted in its place.
std::int64_t snapshot_copies(const RunConfig& config) {
  if (!config.checkpoint.uses_memory()) {
    return 1;
  }
  const std::int64_t partners = config.checkpoint.partner ? 2 : 0;
  const std::int64_t plain = config.encryption.keys.empty() ? 0 : 1;
  return static_cast<std::int64_t>(kMemorySlots) + partners + plain;
}

constexpr const char* kRow = "{:>4} {:>7} {:>7} {:>9} {:>11} {:>7} {:>8} {:>7} {:>8}";

std::string table_row(std::int64_t rank, const MemoryPlan& plan, double unit) {
  const auto cell = [unit](std::int64_t bytes) {
    return fmt::format("{:.2f}", static_cast<double>(bytes) / unit);
  };
  return fmt::format(kRow, rank, cell(plan.parameters), cell(plan.gradients), cell(plan.optimizer),
                     cell(plan.activations), cell(plan.communication), cell(plan.snapshot),
                     cell(plan.program), cell(plan.total()));
}

}  // namespace

const std::array<const char*, MemoryPlan::kParts>& MemoryPlan::names() {
  static constexpr std::array<const char*, kParts> kNames = {
      "parameters",    "gradients", "optimizer", "activations",
      "communication", "snapshot",  "program"};
  return kNames;
}

std::array<std::int64_t, MemoryPlan::kParts> MemoryPlan::parts() const {
  return {parameters, gradients, optimizer, activations, communication, snapshot, program};
}

MemoryPlan MemoryPlan::of(const std::array<std::int64_t, kParts>& p) {
  return {p[0], p[1], p[2], p[3], p[4], p[5], p[6]};
}

std::int64_t MemoryPlan::total() const {
  const auto all = parts();
  return std::accumulate(all.begin(), all.end(), std::int64_t{0});
}

MemoryPlan plan_of_step(const StepMemory& step) {
  MemoryPlan plan;
  plan.parameters = step.working_copies + step.masters;
  plan.gradients = step.gradients;
  plan.optimizer = step.states;
  plan.activations = step.activations;
  plan.communication = step.exchanged + step.gathered + step.scratch;
  return plan;
}

namespace {

// NCCL connects each group along an axis that has several ranks, and each pipeline edge.
std::int64_t nccl_bytes(const ProcessGrid& grid) {
  std::int64_t bytes = 0;
  for (const int ranks : {grid.dp(), grid.tp(), grid.pp()}) {
    bytes += nccl_group_bytes(ranks);
  }
  return bytes + (grid.pp() > 1 ? nccl_transfer_bytes(grid.pp()) : 0);
}

// Returns the number of terms of the longest sum in a product: the width of a matrix, or the
// tokens of a micro-batch in the gradient of a weight.
std::int64_t longest_sum(const RunConfig& config) {
  const ModelConfig& m = config.model;
  const std::int64_t own =
      std::max({m.hidden, m.ffn, m.vocab, config.train.micro_batch * config.data.sequence});
  if (!config.distill.is_on()) {
    return own;
  }
  const ModelConfig& teacher = config.distill.read_model();
  return std::max({own, teacher.hidden, teacher.ffn});
}

// Returns the bytes of the rounded operands of the largest product in fp8, or 0. A layer of a block
// multiplies its input, its weight and the gradient of its output, each with both others.
std::int64_t fp8_bytes(const RunConfig& config, int tensor_ranks) {
  if (!config.train.uses_fp8()) {
    return 0;
  }
  const ModelConfig& m = config.model;
  const std::int64_t rows = config.train.micro_batch * config.data.sequence;
  const std::int64_t queries = m.heads * m.head_dim / tensor_ranks;
  const std::int64_t keys = m.kv_heads * m.head_dim / tensor_ranks;
  std::int64_t most = 0;
  for (const std::int64_t width : {queries + 2 * keys, queries, m.ffn / tensor_ranks}) {
    const std::int64_t weight = m.hidden * width;
    most = std::max({most, weight + rows * std::max(m.hidden, width), rows * (m.hidden + width)});
  }
  return most;
}

// Returns what cuDNN takes for attention beside its operands, or 0.
std::int64_t attention_bytes(const RunConfig& config, int tensor_ranks) {
  if (!config.train.attends_by_cudnn()) {
    return 0;
  }
  AttentionForward call;
  call.batch = config.train.micro_batch;
  call.time = config.data.sequence;
  call.heads = config.model.heads / tensor_ranks;
  call.kv_heads = config.model.kv_heads / tensor_ranks;
  call.head_dim = config.model.head_dim;
  return cuda_attention_bytes(call);
}

MemoryPlan plan_device(const RunConfig& config, const Layout& layout, int rank) {
  const StepMemory step = step_memory(config, layout, rank, kCountsCuda);
  MemoryPlan plan = plan_of_step(step);
  plan.communication += nccl_bytes(layout.grid);
  // Algorithms are chosen and rates measured before anything is trained. Training later reuses the
  // memory that they took.
  const std::int64_t element_bytes = size_of(config.compute_dtype());
  const bool is_simulated = cuda::back_end() == cuda::BackEnd::simulated;
  const std::int64_t side = is_simulated ? kSimulatedCeilingSide : kCeilingSide;
  const std::int64_t choices =
      cuda_choice_bytes(std::max(longest_sum(config), side), element_bytes);
  const std::int64_t ceiling = 3 * side * side * element_bytes;
  const int tensor_ranks = layout.grid.tp();
  plan.program =
      cuda_workspace_bytes(fp8_bytes(config, tensor_ranks), attention_bytes(config, tensor_ranks)) +
      (is_simulated ? 0 : kLibraryBytes) + ceiling +
      std::max<std::int64_t>(
          0, std::max(choices - ceiling, step.loading) - step.activations - step.exchanged);
  return plan;
}

// Returns by how much loading a teacher exceeds what is only needed later.
std::int64_t loading_excess(const StepMemory& step, std::int64_t later) {
  return std::max<std::int64_t>(0, step.loading - later);
}

// Tensors are copied to pinned memory before a checkpoint is written.
MemoryPlan plan_host_of_device(const RunConfig& config, const Layout& layout, int rank,
                               std::int64_t resident_at_start) {
  const StepMemory step = step_memory(config, layout, rank, kCountsCuda);
  MemoryPlan plan;
  plan.snapshot = step.snapshot * (1 + snapshot_copies(config));
  plan.program = resident_at_start + kLaterProgramBytes + std::min(kReadBackBytes, step.snapshot) +
                 loading_excess(step, plan.snapshot);
  return plan;
}

}  // namespace

MemoryPlan plan_memory(const RunConfig& config, const Layout& layout, int rank,
                       std::int64_t resident_at_start, MemoryPlace place) {
  if (place == MemoryPlace::device) {
    return plan_device(config, layout, rank);
  }
  if (place == MemoryPlace::host_of_device) {
    return plan_host_of_device(config, layout, rank, resident_at_start);
  }
  const StepMemory step = step_memory(config, layout, rank);
  MemoryPlan plan = plan_of_step(step);
  plan.snapshot = step.snapshot * snapshot_copies(config);
  plan.program = resident_at_start + kLaterProgramBytes +
                 kernel_workspace(config, layout.grid.tp()) +
                 std::min(kReadBackBytes, step.snapshot) +
                 loading_excess(step, plan.snapshot + plan.activations);
  return plan;
}

std::vector<MemoryPlan> plan_memory_of_all(const RunConfig& config, const Layout& layout,
                                           const std::vector<std::int64_t>& resident_at_start,
                                           MemoryPlace place) {
  const ProcessGrid& grid = layout.grid;
  std::map<std::pair<int, int>, MemoryPlan> of_first;
  std::vector<MemoryPlan> plans;
  for (int rank = 0; rank < grid.world_size(); ++rank) {
    const std::pair stage{grid.pp_rank(rank), grid.tp_rank(rank)};
    if (!of_first.contains(stage)) {
      of_first[stage] =
          plan_memory(config, layout, grid.rank_at(0, stage.second, stage.first), 0, place);
    }
    plans.push_back(of_first[stage]);
    plans.back().program += resident_at_start.at(static_cast<std::size_t>(rank));
  }
  return plans;
}

MemoryTable memory_table(const std::vector<MemoryPlan>& ranks) {
  const auto by_total = [](const MemoryPlan& a, const MemoryPlan& b) {
    return a.total() < b.total();
  };
  const auto most = std::max_element(ranks.begin(), ranks.end(), by_total);
  const bool large = most != ranks.end() && most->total() >= std::int64_t{1} << 30;
  const double unit = large ? 0x1p30 : 0x1p20;
  MemoryTable table{large ? "GiB" : "MiB",
                    {fmt::format(kRow, "rank", "params", "grads", "optimizer", "activations",
                                 "comm", "snapshot", "program", "total")}};
  if (ranks.size() <= kMostLines) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      table.lines.push_back(table_row(static_cast<std::int64_t>(rank), ranks[rank], unit));
    }
    return table;
  }
  const auto least = std::min_element(ranks.begin(), ranks.end(), by_total);
  std::int64_t sum = 0;
  for (const MemoryPlan& plan : ranks) {
    sum += plan.total();
  }
  table.lines.push_back(table_row(most - ranks.begin(), *most, unit));
  table.lines.push_back(fmt::format("{} ranks: {} together, {} (rank {}) to {} (rank {}) each",
                                    ranks.size(), format_bytes(sum), format_bytes(least->total()),
                                    least - ranks.begin(), format_bytes(most->total()),
                                    most - ranks.begin()));
  return table;
}

nlohmann::json to_json(const MemoryPlan& plan) {
  nlohmann::json json = nlohmann::json::object();
  const auto parts = plan.parts();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    json[MemoryPlan::names()[i]] = parts[i];
  }
  json["total"] = plan.total();
  return json;
}

}  // namespace trireme
