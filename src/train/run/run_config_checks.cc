#include "src/train/run/run_config_checks.h"

#include <algorithm>
#include <array>
#include <climits>
#include <tuple>

#include <fmt/format.h>

#include "mpi/network/transport_rule.h"
#include "src/base/error.h"
#include "src/device/cuda_device.h"
#include "src/keys/key_uri.h"
#include "src/train/run/batch_ramp_text.h"
#include "src/train/run/fine_tuning_checks.h"
#include "src/train/run/launch_tls.h"
#include "src/train/run/run_limits.h"

namespace trireme {
namespace {

// Upper limit for the tokens of a run, so that sums of them, and their bytes, stay far below 2^63.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 56;
// Upper limit for the tokens of one micro-batch, because planning takes time and memory in
// proportion.
constexpr std::int64_t kMostRows = std::int64_t{1} << 28;
// Upper limit for the micro-batches of a step, so that lists of them fit into memory.
constexpr std::int64_t kMostMicroBatches = std::int64_t{1} << 20;
// Upper limit for the number of sizes of a batch ramp, because planning iterates over them.
constexpr std::int64_t kMostStages = 4096;

// A rewind must find the checkpoint to which it goes back, and the same one after every restart.
void check_rewinds(ConfigBinder& b, const RunConfig& c) {
  const DivergenceConfig& d = c.divergence;
  const char* const key = d.spike == "rewind" ? "divergence.spike" : "divergence.not_finite";
  if (!d.goes_back()) {
    return;
  }
  const std::int64_t every = c.checkpoint.every.integer;
  if (c.checkpoint.every.is("auto") || every < 1) {
    b.refuse(key,
             "rewind goes back to a multiple of checkpoint.every, which has to be a number of "
             "steps above 0");
    return;
  }
  // After a rewind, the steps that it abandoned still count as kept. Allow for a second rewind from
  // there.
  const std::int64_t intervals = d.rewind_steps / every + (d.rewind_steps % every == 0 ? 0 : 1);
  const std::int64_t needed = 1 + 2 * intervals;
  if (c.checkpoint.keep < needed) {
    b.refuse(key, fmt::format("rewind by divergence.rewind_steps {} needs {} checkpoints of "
                              "checkpoint.every {}: checkpoint.keep is {}",
                              d.rewind_steps, needed, every, c.checkpoint.keep));
  }
}

// With parallel.layout auto, a degree that is given would be overruled.
void check_chosen_layout(ConfigBinder& b, const RunConfig& c) {
  if (c.parallel.layout != "auto") {
    return;
  }
  for (const char* key : {"parallel.dp", "parallel.tp", "parallel.pp", "parallel.schedule",
                          "parallel.virtual_stages", "parallel.zero"}) {
    if (b.origin_of(key) != "default") {
      b.refuse(key, "parallel: auto chooses it: remove the key, or set parallel.layout to given");
    }
  }
}

// Returns whether the path leads to the root folder, also through "..", "." or symbolic links.
bool is_root(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::path full = std::filesystem::weakly_canonical(path, code);
  if (code) {
    full = std::filesystem::absolute(path, code).lexically_normal();
  }
  return !full.empty() && full == full.root_path();
}

// Returns whether the system refuses the path because of its length.
bool is_too_long(const std::filesystem::path& path) {
  return path.native().size() >= PATH_MAX ||
         std::any_of(path.begin(), path.end(), [](const std::filesystem::path& name) {
           return name.native().size() > NAME_MAX;
         });
}

void check_folders(ConfigBinder& b, const RunConfig& c) {
  for (const auto& [key, folder, holds] :
       {std::tuple("run.dir", c.run_dir, "files"),
        std::tuple("checkpoint.dir", c.checkpoint.dir, "checkpoints")}) {
    if (is_too_long(folder)) {
      b.refuse(key, fmt::format("its path is too long: at most {} characters, and {} in each name",
                                PATH_MAX - 1, NAME_MAX));
    } else if (is_root(folder)) {
      b.refuse(key, fmt::format("{} is the root of the file system: name a folder for this run's "
                                "{}",
                                folder.string(), holds));
    }
  }
}

void check_batches(ConfigBinder& b, const TrainConfig& t) {
  if (t.global_batch % t.micro_batch != 0) {
    b.refuse("train.global_batch",
             fmt::format("{} sequences can't be cut into micro-batches of {}: global_batch must be "
                         "a multiple of micro_batch",
                         t.global_batch, t.micro_batch));
  } else if (t.global_batch / t.micro_batch > kMostMicroBatches) {
    b.refuse("train.global_batch",
             fmt::format("{} sequences are more than 2^20 micro-batches of {}: raise "
                         "train.micro_batch",
                         t.global_batch, t.micro_batch));
  }
}

// Refuses a ramp whose keys are incomplete or contradict train.global_batch. Returns whether the
// configuration has a complete ramp.
bool is_whole_ramp(ConfigBinder& b, const TrainConfig& t) {
  const BatchRamp& ramp = t.batch_ramp;
  const std::array<std::pair<const char*, std::int64_t>, 3> keys = {
      {{"train.batch_ramp.from", ramp.from},
       {"train.batch_ramp.by", ramp.by},
       {"train.batch_ramp.every", ramp.every}}};
  const auto given =
      std::count_if(keys.begin(), keys.end(), [](auto& key) { return key.second > 0; });
  for (const auto& [key, value] : keys) {
    if (given > 0 && value == 0) {
      b.refuse(key,
               "a ramp needs from, by and every, each of at least 1: set this one too, or all "
               "three to 0 for no ramp");
    }
  }
  if (ramp.from > t.global_batch) {
    b.refuse("train.batch_ramp.from",
             fmt::format("the first steps would have {} sequences, but train.global_batch allows "
                         "{} at most: lower train.batch_ramp.from",
                         ramp.from, t.global_batch));
    return false;
  }
  return given == static_cast<std::ptrdiff_t>(keys.size());
}

void check_ramp(ConfigBinder& b, const RunConfig& c) {
  if (!is_whole_ramp(b, c.train)) {
    return;
  }
  const BatchSchedule batches = c.batches();
  if (batches.stages() > kMostStages) {
    b.refuse("train.batch_ramp.by",
             fmt::format("steps would have {} different sizes, and {} are allowed: raise it",
                         batches.stages(), kMostStages));
    return;
  }
  const std::int64_t unit = c.train.micro_batch;
  const auto stage = batches.stage_not_multiple_of(unit);
  if (stage && c.train.global_batch % unit == 0) {
    b.refuse(
        *stage == 0 ? "train.batch_ramp.from" : "train.batch_ramp.by",
        fmt::format("{} can't be cut into micro-batches of train.micro_batch {}; {}",
                    describe_stage(batches, *stage), unit, nearest_sizes(batches, *stage, unit)));
  }
}

void check_evaluations(ConfigBinder& b, const RunConfig& c) {
  const bool stops = c.train.early_stop_patience > 0;
  for (const auto& [key, is_on] : {std::pair("checkpoint.keep_best", c.checkpoint.keep_best > 0),
                                   std::pair("train.early_stop.patience", stops)}) {
    if (is_on && c.data.validation.empty()) {
      b.refuse(key, "needs evaluations: name a dataset in data.validation");
    }
  }
  if (stops && c.train.eval_every == 0) {
    b.refuse("train.early_stop.patience",
             "needs evaluations while training: set train.eval_every to a number of steps");
  }
}

void check_loss_scale(ConfigBinder& b, const LossScaleConfig& c) {
  bool valid = true;
  for (const auto& [key, scale] : {std::pair("train.loss_scale.initial", c.initial),
                                   std::pair("train.loss_scale.minimum", c.minimum),
                                   std::pair("train.loss_scale.maximum", c.maximum)}) {
    if (!is_loss_scale(scale)) {
      b.refuse(key,
               fmt::format("{} is not a power of two from 1 to 2^40: other factors would round "
                           "the gradients",
                           scale));
      valid = false;
    }
  }
  if (valid && (c.initial < c.minimum || c.initial > c.maximum)) {
    b.refuse("train.loss_scale.initial",
             fmt::format("{} is not between train.loss_scale.minimum {} and maximum {}", c.initial,
                         c.minimum, c.maximum));
  }
}

// Muon needs whole matrices on the rank that updates them.
void check_optimizer(ConfigBinder& b, const RunConfig& c) {
  const ParallelConfig& p = c.parallel;
  if (c.optimizer.name == "muon" && (p.zero > 0 || p.tp.integer != 1)) {
    b.refuse("optimizer.name",
             "muon needs parallel.zero 0 and parallel.tp 1: it works on whole matrices, which ZeRO "
             "and tensor parallelism cut");
  }
}

// Attention is called for each document (src/nn/attention.h), as if it were a sample.
void check_documents(ConfigBinder& b, const RunConfig& c) {
  if (!c.data.separates_documents()) {
    return;
  }
  if (c.model.has_learned_positions()) {
    b.refuse("data.documents",
             "separate documents need rotary positions or ALiBi: model.family gpt2 has learned "
             "positions, unless model.alibi is true");
  }
  if (c.model.attention_dropout > 0) {
    b.refuse("data.documents", "separate documents are not supported with model.attention_dropout");
  }
  if (c.train.attends_by_cudnn()) {
    b.refuse("data.documents",
             "separate documents are not supported with train.attention cudnn, which plans each "
             "length anew: set train.attention to own");
  }
}

void check_cudnn(ConfigBinder& b, const RunConfig& c) {
  const TrainConfig& t = c.train;
  if (t.attends_by_cudnn() && (t.precision == "fp32" || t.device == "cpu")) {
    b.refuse("train.attention",
             "cudnn needs train.precision bf16 or fp16 and CUDA devices: set it to own");
  }
  if (t.attends_by_cudnn() && c.model.attention_dropout > 0) {
    b.refuse("train.attention",
             "cudnn draws other masks than model.attention_dropout defines: set that to 0, or "
             "train.attention to own");
  }
  if (t.attends_by_cudnn() && c.model.alibi) {
    b.refuse("train.attention",
             "cudnn is not used with model.alibi, whose bias the own kernels add: set it to own");
  }
}

}  // namespace

void check_precision(const RunConfig& c, Device device) {
  if (c.train.scales_loss() && device.is_host()) {
    throw ConfigError(fmt::format(
        "train.precision: fp16 needs CUDA devices, but this run computes on the CPU (train.device: "
        "{}), where bf16 and fp32 work: set train.precision to one of them",
        c.train.device));
  }
  if (c.train.attends_by_cudnn() && device.is_host()) {
    throw ConfigError(
        fmt::format("train.attention: cudnn needs CUDA devices, but this run computes on the CPU "
                    "(train.device: {}): set train.attention to own",
                    c.train.device));
  }
  constexpr int kLeastCapability = 89;
  if (!c.train.uses_fp8()) {
    return;
  }
  const int capability =
      device.kind == DeviceKind::cuda ? cuda::device_facts(device.index).compute_capability : 0;
  if (capability < kLeastCapability) {
    throw ConfigError(fmt::format(
        "train.products: fp8 needs CUDA devices of compute capability 8.9 or later, but this run "
        "computes on {} (train.device: {}): set train.products to precision",
        capability == 0 ? "the CPU" : fmt::format("one of {}.{}", capability / 10, capability % 10),
        c.train.device));
  }
}

// Refuses products in fp8 that the library lacks. tp: the tensor-parallel degree.
void check_fp8_shapes(const RunConfig& c, int tp) {
  constexpr std::int64_t kMultiple = 16;
  const ModelConfig& m = c.model;
  const std::int64_t queries = m.heads * m.head_dim / tp;
  const std::int64_t keys = m.kv_heads * m.head_dim / tp;
  for (const auto& [what, size] :
       {std::pair("model.hidden", m.hidden), std::pair("model.ffn / parallel.tp", m.ffn / tp),
        std::pair("heads x head_dim / parallel.tp", queries),
        std::pair("the width of queries, keys and values", queries + 2 * keys),
        std::pair("train.micro_batch x data.sequence", c.train.micro_batch * c.data.sequence)}) {
    if (c.train.uses_fp8() && size % kMultiple != 0) {
      throw ConfigError(
          fmt::format("train.products: fp8 needs sizes that are multiples of {}, but {} is {}",
                      kMultiple, what, size));
    }
  }
}

void check_attention_shapes(const RunConfig& c) {
  constexpr int kMultiple = 8;
  constexpr int kMost = 128;
  const std::int64_t size = c.model.head_dim;
  if (c.train.attends_by_cudnn() && (size % kMultiple != 0 || size > kMost)) {
    throw ConfigError(fmt::format(
        "train.attention: cudnn needs heads whose size is a multiple of {} up to {}, but "
        "model.head_dim is {}: set train.attention to own",
        kMultiple, kMost, size));
  }
}

void check_keys(ConfigBinder& b, const EncryptionConfig& c) {
  for (const std::string& uri : c.keys) {
    try {
      check_key_uri(uri);
    } catch (const ConfigError& error) {
      b.refuse("encryption.keys", error.what());
    }
  }
  if (c.logs && c.keys.empty()) {
    b.refuse("encryption.logs", "encryption.keys names no key for which to encrypt");
  }
}

void check_audit_copies(ConfigBinder& b, const AuditConfig& c) {
  if (c.lacks_log()) {
    b.refuse("audit.copies", AuditConfig::kLacksLog);
  }
}

// The agents of a launch copy checkpoints over connections of their own.
void check_transport(ConfigBinder& b, const RunConfig& c) {
  try {
    const TransportRule rule = parse_transport_rule(c.security.transport, c.security.networks);
    if (rule.kind == TransportKind::tunnel && c.checkpoint.uses_memory() && c.checkpoint.partner &&
        c.encryption.keys.empty() && !launch_tls(b).is_on) {
      b.refuse("security.transport",
               "copies of checkpoints from node to node go past the tunnel: set launch.tls to "
               "true, encryption.keys, checkpoint.partner to false or checkpoint.memory_every to "
               "0");
    }
  } catch (const ConfigError& error) {
    b.refuse("security.transport", error.what());
  }
}

void check_together(ConfigBinder& b, RunConfig& c) {
  check_folders(b, c);
  check_launch_tls(b);
  check_chosen_layout(b, c);
  const TrainConfig& t = c.train;
  check_loss_scale(b, t.loss_scale);
  if (t.uses_fp8() && (t.precision != "bf16" || t.device == "cpu")) {
    b.refuse("train.products", "fp8 needs train.precision bf16 and CUDA devices");
  }
  check_cudnn(b, c);
  if (t.scales_loss() && t.device == "cpu") {
    b.refuse("train.precision",
             "fp16 needs CUDA devices: with train.device cpu, choose bf16 or fp32");
  }
  check_batches(b, t);
  check_ramp(b, c);
  if (c.data.sequence > c.model.context && c.model.context > 0) {
    b.refuse("data.sequence", fmt::format("{} tokens are longer than the model's context of {}: "
                                          "lower data.sequence or raise model.context",
                                          c.data.sequence, c.model.context));
  }
  if (c.data.sequence == 0) {
    c.data.sequence = c.model.context;
  }
  if (c.data.sequence > kMostRows / t.micro_batch) {
    b.refuse("train.micro_batch",
             fmt::format("{} sequences of {} tokens are more than 2^28 tokens at a time, which fit "
                         "into no memory: lower it, or data.sequence",
                         t.micro_batch, c.data.sequence));
  }
  std::int64_t tokens = 0;
  if (__builtin_mul_overflow(t.global_batch, c.data.sequence, &tokens) ||
      __builtin_mul_overflow(tokens, t.steps, &tokens) || tokens > kMostTokens) {
    b.refuse("train.global_batch",
             fmt::format("steps {} x global_batch {} x sequence {} are more than 2^56 tokens",
                         t.steps, t.global_batch, c.data.sequence));
  }
  check_rewinds(b, c);
  check_evaluations(b, c);
  check_optimizer(b, c);
  check_fine_tuning(b, c);
  check_documents(b, c);
  check_distillation(b, c);
  check_keys(b, c.encryption);
  check_audit_copies(b, c.audit);
  check_transport(b, c);
  c.optimizer.schedule.lr = c.optimizer.lr;
  if (c.optimizer.schedule.steps == 0) {
    c.optimizer.schedule.steps = t.steps;
  }
}

}  // namespace trireme
