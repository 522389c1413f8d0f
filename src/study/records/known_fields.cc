#include "src/study/records/known_fields.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

using Schema = nlohmann::json;

// The lists below name the fields of configurations, metrics, logs, journals, traces, scaling
// studies, predictions and summaries (docs/formats.md). The fields of benchmarks, comparisons,
// histories and acceptances come from their schemas. A field that means different things is listed
// with the field that holds it: `data.train` is a path, and `train` a section.

// These hold figures, choices or other fields.
constexpr std::string_view kFigures =
    "accept_plain accept_plain_data accumulate activations adamw after_launch age algorithms "
    "alibi allowed anonymous async at_once attempt attempts attention audit auto baseline "
    "batch_ramp begun_at best between_hosts bf16_tflops block breaches bubble burn_in_minutes "
    "checkpoint.partner checkpoints chosen chunk ckpt co2_kilograms code comm communication "
    "compute compute_units configuration connections constant copy cosine cp cpus_per_rank "
    "cross_entropy cubic data days deadline debug detect detected device_allocations "
    "device_graphs device_waits devices devices_over_predicted digests distill divergence "
    "documents drain_at_most drawn_micro_batches draws dropped dropped_events dur early_stop "
    "elastic encryption energy ep epsilon exclusive failures fault files finish finite first "
    "fit forbidden force_lock fp32_tflops fp8 fp8_tflops from_memory gated generation given "
    "goodput gpt2 gpu_direct grad_norms gradients graphs grid group_nodes half head health "
    "healthy hours id idle ignore incomplete index input inverse_sqrt keep_zeros kernels "
    "kl_divergence last_fault launch_number launched launches layouts lemon_factor "
    "lemon_share linear lived load local local_connections lock_memory log log_format logs "
    "lora loss_scale loss_window losses maintenance manifest_sha256 max_restarts "
    "mean_hours_between_failures measured memory_check memory_from metrics_are_encrypted "
    "micro_batches_per_replica min_nodes mps_shares nesterov not_finite notice_minutes number "
    "numerics nvls obeyed on_front optimizer other over_predicted overflows overlap pairs "
    "parallel pending per_node pid pipeline plan position_embedding predicted predicted_terms "
    "price price_per_hour processors products provenance_sha256 qkv_bias quantiles queued "
    "rank0 rdma recompute redone replace requeue reserved reserved_memory rewinds rope_factor "
    "rope_high_frequency rope_low_frequency rope_original_context rope_scaling rx_errors "
    "scratch seccomp seconds_left secrets_removed security seen self_check sequence_parallel "
    "share_device signal simulated since skip skipped_in_a_row slowdown slowness slurm "
    "snapshot source_id spent spike spread stall stop_asked straggler stragglers "
    "sums_of_squares swiglu taper tensor terms tid tie_embeddings tied timeline times "
    "tokenizer_digest tokenizer_vocab tokens_per_second traceEvents train transfer tried "
    "trireme ts type unknown update updated updates val_loss validation waits watts when "
    "where whole width_scale without_improvement xxh3";
// These hold the same, and a number may be written as a text, as in a configuration.
constexpr std::string_view kNumbers =
    "accounted_seconds attention_dropout attention_scale betas bucket_bytes busy_seconds by "
    "checkpoint checkpoint_stall_ms clip clock_uncertainty_us co2_grams_per_kwh "
    "co2_grams_per_step co2_kilograms_high co2_kilograms_low compare_every compute_median_ms "
    "context cores cost_seconds cpu_joules cpu_joules_per_checkpoint cpu_joules_per_step "
    "cpu_joules_per_token cpu_watts days_high days_low decay detect_seconds deviation "
    "disk_seconds dp drift_us dropout durable_step effective_ratio ema embedding_scale epochs "
    "eps eval_every eval_samples evaluate evaluation_ms event_deadline every every_days "
    "exclude_seconds factor ffn first_step_seconds from_step gb_per_s global_batch gpu_joules "
    "gpu_joules_per_checkpoint gpu_joules_per_step gpu_joules_per_token gpu_watts grad_norm "
    "growth_interval head_dim heads hidden high_frequency history idle_seconds idle_watts "
    "initial initializer_range keep keep_best keep_every kilowatt_hours kilowatt_hours_high "
    "kilowatt_hours_low kv_heads label_smoothing launch_us layers least_seconds limit_hours "
    "load_seconds log_bytes log_every logit_scale loss loss_mean loss_score loss_step "
    "low_frequency lr max_rewinds max_skipped_steps maximum mean memory_every memory_gb_per_s "
    "memory_seconds mfu micro_batch min_delta min_lr minimum momentum mtbf mtbf_hours "
    "mtbf_seconds norm_epsilon norm_score numa_nodes offset_us openmetrics_every "
    "original_context patience per_1000_node_days pp predicted_memory_bytes price_high "
    "price_low price_per_kwh price_per_step pue rank ranks ranks_up_seconds read_gb_per_s "
    "recompute_every recovery_seconds relaunch_seconds repair_hours replay_steps "
    "residual_percent restart_seconds resume rewind_steps rope_theta save_interval_seconds "
    "save_seconds seconds.exclude seed sequence site_hours skip_batches skipped_steps sockets "
    "stall_seconds start step step_seconds step_seconds_high step_seconds_low steps "
    "stop_before_end straggler_every sum sum_ms t_iter_ms temperature threads to_step tokens "
    "tokens_per_s total tp trace uncertainty_us vocab wait_hours wall_seconds warmup weight "
    "weight_decay write_gb_per_s z_loss zero";
// These hold a choice or other fields, and never a number.
constexpr std::string_view kChoices =
    "agreed.name allow_change args args.name backend binding cat cause clock.name "
    "comm.require data.documents details device displayTimeUnit divergence.not_finite "
    "divergence.spike driver event family figures.name findings findings.name fmt format "
    "frozen gpu_back_end gpus improvements.name kind launch.tls layout level lora.products "
    "loss_bits onednn optimizer.name parallel.layout parallel.sequence ph phase precision "
    "preset regressions.name reproducibility require results.name rows.name run.log_format "
    "run.memory_check schedule source state status traceEvents.name train.attention "
    "train.graphs train.products train.recompute transport val_loss_bits";
// These hold texts that the site chooses.
constexpr std::string_view kSiteTexts =
    "actions advice arguments audit.log ca certificate cluster command_line complaints config "
    "copies currency data.train data.validation description dir doubt doubts drain "
    "drain_commands exclude file folder gpu_bind gpu_request gpu_type gres groups init_from "
    "instructions interfaces job key keys launch link.start measures message modules name "
    "network networks node.start notes on_event openmetrics options origin parent path place "
    "profile profile.start queue reference run sentence site site_list slurm_job spares "
    "storage teacher text tls tokenizer tuning uuid variables warnings what why why_not";
// These hold names of hosts; those of the second list may also hold how many hosts there are.
constexpr std::string_view kHosts = "a b from_host host node partner suspect to_host";
constexpr std::string_view kHostsOrCounts =
    "excluded first_nodes hosts in_use joined link links members nodes sites";
// These list figures by name. Some of the names are the program's, such as "disk read".
constexpr std::string_view kReadings = "counters facts limits rates";
// These list figures by names that the site chooses, such as those of validation sets.
constexpr std::string_view kMaps = "sources val_losses val_losses_bits";

// These words are choices of configurations, or name an event, a cause, a phase, a level or a
// state.
constexpr std::string_view kWords =
    "1f1b B CLOCK_MONOTONIC CLOCK_MONOTONIC_RAW CUDA Clang E EUR FLOP/s GB/s GFLOP/s GNU GiB "
    "M MB/s MPI NCCL Open TFLOP/s USD X aarch64 abort adamw agent_lost agent_ready algorithms "
    "all_gather all_reduce all_to_all always amx and any attempt_end auto avx2 avx512 "
    "avx512_bf16 avx512_vnni backward bad barrier beegfs begin bfloat16 block broadcast btrfs "
    "build bytes bytes/s checkpoint communication compute constant control core cosine cpu "
    "cuda cudnn current data debug default delayed detect device disk divergence double down "
    "dp early_exit elastic end end_attempt engine error evaluate evaluation exclude excluded "
    "exited ext4 f failed fast fatal fault finished first_step float for fsdp full gave_up "
    "gguf given global good gpfs gpipe gpt2 gpt2-124m gpt2-1558m gpt2-355m gpt2-774m gpu "
    "gpudirect gradient gradients graphs gres half hang hf hierarchical idle ignore info int4 "
    "int8 interleaved interrupted inverse_sqrt io isolated joined json kahan killed launch "
    "launcher_ended launcher_left linear links llama llama-160m llama-1b llama-3b llama-405b "
    "llama-70b llama-8b llama3-1t llama3-405b llama3-70b llama3-8b load local losses lustre "
    "main max meet megatron memory memory_checkpoint memory_measured memory_predicted min mpi "
    "mps ms muon nccl never nfs no node_death node_excluded node_lost nodes none norm "
    "not_found ns numa numerics nvlink off on onnx operation operations/s ops optimizer "
    "out_of_memory outlier over overlay own per-node per-task plain pp precision prediction "
    "print process_death process_name products q4_0 q4_k q8_0 quiet rank_gone rdma read "
    "recursive_doubling recv redone reduce_scatter refused relaunch requeue required resumed "
    "rewind ring running s save_interval selective send sends separate sgd shm signal skip "
    "small-gpt2 small-llama square srun sse sse41 stands_out start starting status step stop "
    "stop_asked stop_requested stopped straggler sum thread_name tiny-gpt2 tiny-llama tmpfs "
    "tokens tokens/s tp tree trireme-launch-report-2 trireme-status-2 tsc ucx up us usage "
    "vectors waiting warn warning write wsd x86_64 xfs zero_bubble";

// The program writes files and folders of these names, which stand here without suffixes.
constexpr std::string_view kFiles =
    "DONE MANIFEST acceptance checkpoints config exit_reason history journal logs manifest "
    "metrics more prediction provenance.intoto report study tensorboard trace";

using Names = std::set<std::string, std::less<>>;

// Returns the words of a text, which have blanks between them.
Names words_of(std::string_view text) {
  Names all;
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    all.insert(word);
  }
  return all;
}

struct Vocabulary {
  std::map<std::string, FieldKind, std::less<>> fields;
  Names words;
};

// Returns whether a schema allows no number, unless in a field of its own.
bool has_no_number(const Schema& schema) {
  const auto is_no_number = [&](const Schema& type) {
    if (type == "array") {
      const auto items = schema.find("items");
      return items != schema.end() && items->is_object() && has_no_number(*items);
    }
    return type == "string" || type == "null" || type == "boolean" || type == "object";
  };
  if (const auto type = schema.find("type"); type != schema.end()) {
    return type->is_array() ? std::all_of(type->begin(), type->end(), is_no_number)
                            : is_no_number(*type);
  }
  if (const auto choices = schema.find("enum"); choices != schema.end()) {
    return std::all_of(choices->begin(), choices->end(),
                       [](const Schema& choice) { return !choice.is_number(); });
  }
  const auto choice = schema.find("const");
  return choice != schema.end() && !choice->is_number();
}

void add_words(const Schema& schema, Vocabulary& all) {
  const auto add = [&](const Schema& each) {
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
void add_schema(const Schema& schema, Vocabulary& all) {
  if (schema.is_object()) {
    add_words(schema, all);
    if (const auto properties = schema.find("properties");
        properties != schema.end() && properties->is_object()) {
      for (const auto& [name, each] : properties->items()) {
        FieldKind& kind = all.fields.try_emplace(name, FieldKind::choice).first->second;
        if (!has_no_number(each)) {
          kind = FieldKind::figures;
        }
      }
    }
  }
  if (schema.is_structured()) {
    for (const Schema& part : schema) {
      add_schema(part, all);
    }
  }
}

Vocabulary whole_vocabulary() {
  Vocabulary all;
  all.words = words_of(kWords);
  for (const std::string_view schema : public_schemas()) {
    add_schema(parse_json(schema), all);
  }
  const auto add = [&](std::string_view names, FieldKind kind) {
    for (const std::string& name : words_of(names)) {
      all.fields[name] = kind;
    }
  };
  add(kFigures, FieldKind::figures);
  add(kNumbers, FieldKind::numbers);
  add(kChoices, FieldKind::choice);
  add(kSiteTexts, FieldKind::site_text);
  add(kHosts, FieldKind::host);
  add(kHostsOrCounts, FieldKind::hosts_or_counts);
  add(kReadings, FieldKind::readings);
  add(kMaps, FieldKind::map);
  return all;
}

const Vocabulary& vocabulary() {
  static const Vocabulary all = whole_vocabulary();
  return all;
}

}  // namespace

FieldKind kind_of_field(std::string_view name, std::string_view parent) {
  const auto& fields = vocabulary().fields;
  auto found = fields.find(std::string(parent) + "." + std::string(name));
  if (found == fields.end()) {
    found = fields.find(name);
  }
  return found == fields.end() ? FieldKind::unknown : found->second;
}

bool is_known_word(std::string_view word) { return vocabulary().words.contains(word); }

bool is_shaped(std::string_view text, std::string_view shape) {
  return text.size() == shape.size() &&
         std::equal(text.begin(), text.end(), shape.begin(), [](char a, char b) {
           return b == '0' ? std::isdigit(static_cast<unsigned char>(a)) != 0 : a == b;
         });
}

bool is_known_file(std::string_view stem) {
  static const Names files = words_of(kFiles);
  return files.contains(stem) || is_shaped(stem, "rank-00000") || is_shaped(stem, "n0000-r00");
}

}  // namespace trireme
