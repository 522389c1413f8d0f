#include "src/study/anonymity/ordinary_words.h"

#include <string>

namespace trireme {
namespace {

// Words of messages and figures, the commands of this program with their benchmarks, and the parts
// of the keys of its configuration; each between two blanks.
constexpr std::string_view kOrdinaryWords =
    " accept accept_plain accept_plain_data adamw add alibi all allow_change any archive async"
    " attention attention_dropout attention_scale audit auto backend batch batch_ramp bench"
    " betas bf16 bucket_bytes burn by bytes ca calibrate certificate check checkpoint ckpt clip"
    " cluster co2_grams_per_kwh coll comm compare compare_every completion config context"
    " convert copies count cpu create cuda currency data deadline debug decay decrypt destroy"
    " device digest digests dir distill divergence doctor documents down dp drift dropout each"
    " early_stop ema embedding_scale encrypt encryption energy epoch eps erase error eval"
    " eval_every eval_samples evaluate event_deadline every export factor failed failure false"
    " family fatal faults ffn file force_lock fp32 fp8 from frozen gemm generate global_batch"
    " gpu grad graphs growth_interval head_dim heads health hidden high_frequency history home"
    " host hosts import inf info init_from initial initializer_range io keep keep_best"
    " keep_every keep_zeros key keygen keys kind kv_heads label_smoothing launch layers layout"
    " limits list loader localhost lock_memory log log_bytes log_every log_format logit_scale"
    " logs lora loss loss_scale losses low_frequency lr ls man max max_rewinds max_skipped_steps"
    " maximum mean measures median mem memory_check memory_every metrics micro_batch min"
    " min_delta min_lr minimum model momentum ms mtbf n name nan nesterov network networks no"
    " node nodes noise none norm norm_epsilon not_finite notice null numerics off ok on on_event"
    " openmetrics openmetrics_every optimizer original_context p2p pack pairs parallel partner"
    " pass path patience pinned pipeline placement plan plot policy pp precision preset presets"
    " price_per_kwh products promote prune pue qkv_bias rank ranks recompute recompute_every"
    " registry release remove render replay_steps report reproducibility request require resume"
    " rewind_steps rollback root rope_scaling rope_theta rotate rounds run runs samples scale"
    " scaling schedule score seccomp security seed self_check sequence share_device show shuffle"
    " sign simulate skip_batches slurm sparsify spike stage start state status step steps"
    " stop_before_end straggler_every submit sum swiglu teacher temperature test the this"
    " threads threshold tie_embeddings time times tls tmp token tokenizer tokens tp trace train"
    " transport trireme true tuning unknown up user users validate validation value verify"
    " version virtual_stages vocab warmup warn warning weight weight_decay window yes z_loss"
    " zero ";

}  // namespace

bool is_ordinary_word(std::string_view word) {
  const bool is_one = word.find(' ') == std::string_view::npos && !word.empty();
  return is_one && kOrdinaryWords.find(" " + std::string(word) + " ") != std::string_view::npos;
}

}  // namespace trireme
