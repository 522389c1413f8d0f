#include "src/study/records/known_fields.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

using Json = nlohmann::json;

// The fields of configurations, metrics, logs, journals, scaling studies and summaries, as their
// pages name them (docs/formats.md). Those of benchmarks, comparisons, histories and acceptances
// come from their schemas.
constexpr std::string_view kFields =
    "accept_plain accept_plain_data accounted_seconds actions activations adamw after_launch "
    "age algorithms alibi allow_change allowed anonymous args arguments async at_once attempt "
    "attempts attention attention_dropout attention_scale audit auto baseline batch_ramp "
    "begun_at best betas between_hosts bf16_tflops binding block breaches bubble bucket_bytes "
    "burn_in_minutes ca cat cause certificate checkpoint checkpoint_stall_ms checkpoints "
    "chosen chunk ckpt clip clock_uncertainty_us cluster co2_grams_per_kwh co2_grams_per_step "
    "code comm communication compare_every compute compute_median_ms compute_units "
    "configuration connections constant context copies copy cosine cost_seconds counters cp "
    "cpu_joules cpu_joules_per_checkpoint cpu_joules_per_step cpu_joules_per_token cpu_watts "
    "cpus_per_rank cross_entropy cubic currency data days deadline debug decay description "
    "detect detect_seconds detected deviation device_allocations device_graphs device_waits "
    "devices devices_over_predicted digests dir disk_seconds displayTimeUnit distill "
    "divergence documents doubts drain_at_most drift_us dropout dropped dropped_events dur "
    "durable_step early_stop effective_ratio elastic ema embedding_scale encryption energy ep "
    "epochs eps epsilon eval_every eval_samples evaluate evaluation_ms event event_deadline "
    "every every_days exclude exclude_seconds excluded exclusive factor failures family fault "
    "ffn files finish finite first first_nodes first_step_seconds fmt forbidden force_lock "
    "format fp32_tflops fp8 fp8_tflops from_memory from_step frozen gb_per_s generation given "
    "gpt2 gpu_bind gpu_direct gpu_joules gpu_joules_per_checkpoint gpu_joules_per_step "
    "gpu_joules_per_token gpu_request gpu_type gpu_watts grad_norm grad_norms gradients "
    "graphs grid group_nodes groups growth_interval half head_dim heads health hidden "
    "high_frequency history hours id idle idle_watts ignore in_use incomplete index init_from "
    "initial initializer_range input instructions interfaces inverse_sqrt job joined keep "
    "keep_best keep_every keep_zeros key keys kind kl_divergence kv_heads label_smoothing "
    "last_fault launch launch_number launch_us launched launches layers layout least_seconds "
    "lemon_factor lemon_share level limit_hours linear lived load load_seconds local "
    "local_connections lock_memory log log_bytes log_every log_format logit_scale logs lora "
    "loss_bits loss_mean loss_scale loss_score loss_step loss_window losses low_frequency lr "
    "maintenance manifest_sha256 max_restarts max_rewinds max_skipped_steps maximum mean "
    "mean_hours_between_failures memory_check memory_every memory_gb_per_s memory_seconds "
    "message metrics_are_encrypted mfu micro_batches_per_replica min_delta min_lr min_nodes "
    "minimum modules momentum mps_shares mtbf mtbf_hours nesterov network networks "
    "norm_epsilon norm_score not_finite notice_minutes number numerics nvls obeyed offset_us "
    "on_event onednn openmetrics openmetrics_every optimizer options origin original_context "
    "other over_predicted overflows overlap pairs parallel parent patience pending "
    "per_1000_node_days per_node ph phase pid place plan position_embedding predicted "
    "predicted_memory_bytes predicted_terms preset price_per_hour price_per_kwh "
    "price_per_step processors products provenance_sha256 pue qkv_bias queue queued rank0 "
    "ranks_up_seconds rates rdma read_gb_per_s recompute_every recovery_seconds redone "
    "reference relaunch_seconds repair_hours replace replay_steps requeue require "
    "reserved_memory residual_percent resume rewind_steps rewinds rope_factor "
    "rope_high_frequency rope_low_frequency rope_original_context rope_scaling rope_theta run "
    "rx_errors save_seconds scratch seccomp seconds_left secrets_removed security seed seen "
    "self_check sequence_parallel share_device signal simulated since site site_hours "
    "site_list sites skip skip_batches skipped_in_a_row skipped_steps slowdown slowness slurm "
    "slurm_job snapshot source_id sources spares spent spike spread stall start state step "
    "step_seconds stop_asked stop_before_end storage straggler straggler_every stragglers sum "
    "sum_ms sums_of_squares swiglu t_iter_ms taper teacher temperature text tid "
    "tie_embeddings times tls to_step tokenizer tokenizer_digest tokenizer_vocab tokens total "
    "trace traceEvents train transport trireme ts tuning type uncertainty_us unknown updated "
    "updates val_loss val_loss_bits val_losses validation variables vocab wait_hours waits "
    "wall_seconds watts weight weight_decay what when where whole why_not width_scale "
    "without_improvement write_gb_per_s xxh3 z_loss";

// The choices of configurations, and what events, causes, phases, levels and states are called.
constexpr std::string_view kWords =
    "1f1b B CLOCK_MONOTONIC CLOCK_MONOTONIC_RAW E EUR FLOP/s GB/s M MB/s USD X aarch64 abort "
    "adamw agent_lost agent_ready algorithms all_gather all_reduce all_to_all always amx any "
    "attempt_end auto avx2 avx512 avx512_bf16 avx512_vnni backward bad barrier beegfs begin "
    "bfloat16 block broadcast btrfs build bytes bytes/s checkpoint communication compute "
    "constant control core cosine cpu cuda cudnn current data debug default delayed detect "
    "device divergence double dp elastic end end_attempt error evaluate exclude excluded "
    "exited ext4 f failed fast fatal fault finished first_step float for full gave_up gguf "
    "given global good gpfs gpipe gpt2 gpt2-124m gpt2-1558m gpt2-355m gpt2-774m gpu gpudirect "
    "gradient gradients graphs gres half hf hierarchical idle ignore info int4 int8 "
    "interleaved interrupted inverse_sqrt isolated joined json kahan killed launch "
    "launcher_ended launcher_left linear links llama llama-160m llama-1b llama-3b llama-405b "
    "llama-70b llama-8b llama3-1t llama3-405b llama3-70b llama3-8b load local losses lustre "
    "main max meet megatron memory memory_checkpoint memory_measured memory_predicted min mpi "
    "mps ms muon nccl never nfs node_excluded node_lost nodes none norm ns numa nvlink off on "
    "onnx operation operations/s ops optimizer out_of_memory outlier over overlay own "
    "per-node per-task plain pp precision prediction print process_name products q4_0 q4_k "
    "q8_0 quiet rank_gone rdma recursive_doubling recv redone reduce_scatter relaunch requeue "
    "required resumed rewind ring running s save_interval selective send sends separate sgd "
    "shm signal skip small-gpt2 small-llama square srun sse sse41 stands_out start starting "
    "status stop stop_asked stop_requested stopped straggler sum thread_name tiny-gpt2 "
    "tiny-llama tmpfs tokens tokens/s tp tree trireme-launch-report-2 trireme-status-2 tsc "
    "ucx us vectors waiting warn warning wsd x86_64 xfs zero_bubble";

// What the texts in these name is chosen by the site.
constexpr std::string_view kHostFields =
    "host hosts node nodes first_nodes excluded in_use joined links link partner suspect "
    "members a b sites from_host to_host between_hosts interfaces";
constexpr std::string_view kOtherFields =
    "run dir file files folder folders source sources site site_list config command_line "
    "arguments teacher init_from tokenizer cluster profile launch job slurm_job message text "
    "what why sentence uuid description origin data";

// Whoever finds a number in these has mistaken a field.
constexpr std::string_view kTextFields = "key keys certificate ca tls";

// Files and folders, without suffixes.
constexpr std::string_view kFiles =
    "config metrics exit_reason journal prediction DONE logs checkpoints tensorboard trace "
    "MANIFEST acceptance study history report manifest provenance.intoto more";

using Names = std::set<std::string, std::less<>>;

// Returns the words of a text, which have blanks between them.
Names words_of(std::string_view text) {
  std::istringstream words{std::string(text)};
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

struct Vocabulary {
  Names fields, words;
};

void add_words(const Json& schema, Vocabulary& all) {
  const auto add = [&](const Json& each) {
    if (each.is_string()) {
      all.words.insert(each.get<std::string>());
    }
  };
  if (const auto choices = schema.find("enum"); choices != schema.end() && choices->is_array()) {
    std::for_each(choices->begin(), choices->end(), add);
  }
  if (const auto choice = schema.find("const"); choice != schema.end()) {
    add(*choice);
  }
}

// Adds what a schema, or a part of it, describes.
void add_schema(const Json& schema, Vocabulary& all) {
  if (schema.is_object()) {
    add_words(schema, all);
    if (const auto properties = schema.find("properties");
        properties != schema.end() && properties->is_object()) {
      for (const auto& [name, each] : properties->items()) {
        all.fields.insert(name);
      }
    }
  }
  if (schema.is_structured()) {
    for (const Json& part : schema) {
      add_schema(part, all);
    }
  }
}

Vocabulary whole_vocabulary() {
  Vocabulary all = {words_of(kFields), words_of(kWords)};
  for (const std::string_view schema : public_schemas()) {
    add_schema(parse_json(schema), all);
  }
  return all;
}

const Vocabulary& vocabulary() {
  static const Vocabulary all = whole_vocabulary();
  return all;
}

}  // namespace

bool is_known_field(std::string_view name) { return vocabulary().fields.contains(name); }

bool holds_figures(std::string_view name) {
  static const Names texts = words_of(kTextFields);
  return is_known_field(name) && !texts.contains(name);
}

bool is_known_word(std::string_view word) { return vocabulary().words.contains(word); }

bool is_shaped(std::string_view text, std::string_view shape) {
  return text.size() == shape.size() &&
         std::equal(text.begin(), text.end(), shape.begin(), [](char a, char b) {
           return b == '0' ? std::isdigit(static_cast<unsigned char>(a)) != 0 : a == b;
         });
}

Naming named_by(std::string_view field) {
  static const Names hosts = words_of(kHostFields);
  static const Names others = words_of(kOtherFields);
  if (hosts.contains(field)) {
    return Naming::hosts;
  }
  return others.contains(field) ? Naming::others : Naming::nothing;
}

bool is_known_file(std::string_view stem) {
  static const Names files = words_of(kFiles);
  if (files.contains(stem)) {
    return true;
  }
  return is_shaped(stem, "rank-00000") || is_shaped(stem, "n0000-r00");
}

}  // namespace trireme
