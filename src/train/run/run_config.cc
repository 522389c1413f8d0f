#include "src/train/run/run_config.h"

#include "mpi/session/backend.h"
#include "src/base/error.h"
#include "src/parallel/pipeline/schedule.h"
#include "src/train/run/model_presets.h"
#include "src/train/run/run_config_checks.h"

namespace trireme {
namespace {

// A step is a 32-bit coordinate of dropout's random numbers.
constexpr double kMostSteps = 4294967295;
// Upper limit for durations in seconds or hours: they fit into 64 bits of nanoseconds.
constexpr double kLongest = 1e8;

// More than any machine has; three such degrees multiplied stay below 2^63.
constexpr double kMostRanks = 1048576;

void bind(ConfigBinder& b, DataConfig& c) {
  b.path("data.train", c.train, "folder of the training dataset (trireme data pack)").required();
  b.path("data.validation", c.validation, "folder of the validation dataset; empty: none");
  b.integer("data.sequence", c.sequence, "tokens a sample; 0: the model's context").at_least(0);
  b.text("data.shuffle", c.shuffle,
         "block: blocks of neighbouring samples, then within a window; global: all samples")
      .one_of({"block", "global", "none"});
  b.integer("data.seed", c.seed, "seed of the sample order");
}

void bind(ConfigBinder& b, TrainConfig& c) {
  b.integer("train.steps", c.steps, "optimizer steps of the whole run")
      .required()
      .at_least(1)
      .at_most(kMostSteps);
  b.integer("train.global_batch", c.global_batch, "sequences a step, over all ranks")
      .required()
      .at_least(1);
  b.integer("train.micro_batch", c.micro_batch, "sequences a rank computes at a time").at_least(1);
  b.text("train.precision", c.precision, "of activations and products; sums and masters are fp32")
      .one_of({"bf16", "fp32"});
  b.real("train.label_smoothing", c.label_smoothing,
         "share of each target that is spread over the vocabulary")
      .at_least(0)
      .below(1);
  b.real("train.z_loss", c.z_loss,
         "weight of the squared logarithm of the softmax's denominator in the loss; 0: none")
      .at_least(0);
  b.integer("train.seed", c.seed, "seed of initial weights and dropout");
  b.integer("train.log_every", c.log_every, "steps between logged steps").at_least(1);
  b.integer("train.eval_every", c.eval_every, "steps between evaluations; 0: only at the end")
      .at_least(0);
  b.integer("train.eval_samples", c.eval_samples, "sequences of the validation set an evaluation")
      .at_least(1);
  b.integer("train.early_stop.patience", c.early_stop_patience,
            "end the run after so many evaluations in a row without an improvement; 0: never")
      .at_least(0);
  b.real("train.early_stop.min_delta", c.early_stop_min_delta,
         "an improvement is a validation loss lower than the best by more than this")
      .at_least(0);
  b.integer("train.max_skipped_steps", c.max_skipped_steps,
            "steps in a row that may be skipped because loss or gradient is not finite, or stands "
            "out")
      .at_least(0);
  b.integer_or_word("train.threads", c.threads, {"auto"},
                    "compute threads a rank; auto: its share of the cores it is bound to")
      .at_least(1)
      .at_most(1024);
  b.text("train.recompute", c.recompute,
         "what backward computes again to save memory: selective: norms, activations, attention; "
         "full: whole blocks")
      .one_of({"none", "selective", "full"});
  b.integer("train.recompute_every", c.recompute_every,
            "full: recompute the blocks whose number is a multiple of this")
      .at_least(1);
  b.integer("train.compare_every", c.compare_every,
            "steps between comparisons of what ranks hold alike, which find silent data "
            "corruption; 0: never")
      .at_least(0);
  b.integer(
       "train.straggler_every", c.straggler_every,
       "steps after which ranks compare how long they computed; one that is slower three times "
       "in a row is named; 0: never")
      .at_least(0);
}

void bind(ConfigBinder& b, ParallelConfig& c) {
  b.integer_or_word("parallel.dp", c.dp, {"auto"},
                    "data-parallel replicas; auto: as many as tp and pp leave room for")
      .at_least(1)
      .at_most(kMostRanks);
  b.integer_or_word("parallel.tp", c.tp, {"auto"},
                    "tensor-parallel ranks a stage; auto, with dp given: as many as a host has")
      .at_least(1)
      .at_most(kMostRanks);
  b.integer_or_word("parallel.pp", c.pp, {"auto"},
                    "pipeline stages a replica; auto, with dp given: what is left")
      .at_least(1)
      .at_most(kMostRanks);
  b.text("parallel.schedule", c.schedule, "order of work in the pipeline")
      .one_of(pipeline_schedule_names());
  b.integer("parallel.virtual_stages", c.virtual_stages,
            "pieces of the model a rank, of the interleaved schedule")
      .at_least(1)
      .at_most(1024);
  b.integer("parallel.zero", c.zero,
            "what replicas shard: 0 nothing, 1 optimizer state, 2 gradients too, 3 parameters too")
      .at_least(0)
      .at_most(3);
  b.text("parallel.sequence", c.sequence,
         "whether tensor-parallel ranks share out the tokens between their products, which saves "
         "memory; auto: where data.sequence is a multiple of tp")
      .one_of({"auto", "on", "off"});
  b.text("parallel.placement", c.placement,
         "print: say at the start which ranks form which groups, where, and why")
      .one_of({"quiet", "print"});
  b.bytes("parallel.bucket_bytes", c.bucket_bytes, "gradients reduced at a time").at_least(1);
}

void bind(ConfigBinder& b, CheckpointConfig& c) {
  b.path("checkpoint.dir", c.dir, "where checkpoints are; empty: <run>/checkpoints");
  b.integer_or_word("checkpoint.every", c.every, {"auto"},
                    "steps between saves; 0: at the end and when stopped; auto: from what a save "
                    "costs and checkpoint.mtbf")
      .at_least(0);
  b.integer_or_word("checkpoint.memory_every", c.memory_every, {"auto"},
                    "steps between saves in the nodes' memory, which trireme launch keeps when "
                    "ranks die; 0: never; auto: as above")
      .at_least(0);
  b.boolean("checkpoint.partner", c.partner,
            "each node's memory is copied to another node's, so that it survives the node");
  b.real("checkpoint.mtbf", c.mtbf,
         "hours between failures of the whole run, for auto; 0: as trireme launch has seen, or 24")
      .at_least(0)
      .at_most(kLongest);
  b.integer("checkpoint.keep", c.keep, "newest checkpoints to keep").at_least(2);
  b.integer("checkpoint.keep_every", c.keep_every, "keep steps divisible by this for good; 0: none")
      .at_least(0);
  b.integer("checkpoint.keep_best", c.keep_best,
            "also keep the steps of the lowest validation losses, so many; saves each of them "
            "when it is evaluated; 0: none")
      .at_least(0)
      .at_most(1000);
  b.integer_or_word("checkpoint.resume", c.resume, {"auto", "never"},
                    "auto: from the newest valid checkpoint, if there is any; never; or a step")
      .at_least(1);
  b.boolean("checkpoint.async", c.async, "write in the background while training goes on");
  b.boolean("checkpoint.force_lock", c.force_lock,
            "take over the folder from a run on another host that is known to be dead");
  b.texts("checkpoint.allow_change", c.allow_change,
          "configuration fields that may differ from the checkpoint's");
}

void bind(ConfigBinder& b, DivergenceConfig& c) {
  b.text(
       "divergence.not_finite", c.not_finite,
       "what follows a loss or gradient that is no finite number: skip the update (up to "
       "train.max_skipped_steps in a row); rewind: go back to a checkpoint and leave out the data "
       "that led there; stop")
      .one_of({"skip", "rewind", "stop"});
  b.text("divergence.spike", c.spike,
         "the same for a loss or gradient norm that stands out from those of the steps before")
      .one_of({"ignore", "warn", "skip", "rewind", "stop"});
  b.integer("divergence.window", c.window, "steps that a step is compared with")
      .at_least(8)
      .at_most(4096);
  b.real("divergence.threshold", c.threshold,
         "what stands out: so many deviations above the median of the window")
      .above(0);
  b.integer("divergence.rewind_steps", c.rewind_steps,
            "a rewind goes back at least so many steps, to a multiple of checkpoint.every")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer("divergence.skip_batches", c.skip_batches,
            "global batches beyond the bad step's that a rewind leaves out, too")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer("divergence.max_rewinds", c.max_rewinds, "of the whole run; one more ends it")
      .at_least(0)
      .at_most(1000);
  b.integer("divergence.replay_steps", c.replay_steps,
            "before a rewind or stop the steps since the newest checkpoint, up to so many, are "
            "computed again: other bits mean a fault of the hardware; 0: never")
      .at_least(0)
      .at_most(kMostSteps);
  b.boolean("divergence.digests", c.digests,
            "keep digests of every micro-batch's gradient, so that the rank can be named whose "
            "bits differ; costs a pass over each gradient");
}

void bind(ConfigBinder& b, RunConfig& c) {
  b.text("numerics.reproducibility", c.reproducibility,
         "elastic: the same bits for every dp that is a power of two; layout: for the same layout; "
         "fast: no promise")
      .one_of({"elastic", "layout", "fast"});
  b.boolean(
      "numerics.self_check", c.self_check,
      "compare each kernel with the reference at the start, at this run's widths and threads; a "
      "host that computes wrong numbers is refused");
  b.text("comm.backend", c.comm_backend, "transport between ranks").one_of(backend_names());
  b.path("comm.tuning", c.comm_tuning,
         "table of `trireme bench coll --write-tuning FILE`: which backend for which operation and "
         "size");
  b.real("comm.deadline.start", c.deadline.start, "seconds before a wait at start is a hang")
      .above(0)
      .at_most(kLongest);
  b.real("comm.deadline.step", c.deadline.step, "the same within a step")
      .above(0)
      .at_most(kLongest);
  b.real("comm.deadline.checkpoint", c.deadline.checkpoint, "the same around a save or load")
      .above(0)
      .at_most(kLongest);
  b.real("comm.deadline.evaluate", c.deadline.evaluate, "the same within an evaluation")
      .above(0)
      .at_most(kLongest);
  b.path("run.dir", c.run_dir, "folder of this run's files").required();
  b.text("run.name", c.run_name, "a name for people");
  b.integer("run.trace", c.trace,
            "steps to trace, after the first two of a start; 0: none (docs/parallelism.md)")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer_or_word("run.stop_before_end", c.stop_before_end, {"auto", "never"},
                    "seconds before the end of a Slurm job to save and leave; auto: as measured")
      .at_least(1);
  b.text(
       "run.log_format", c.log_format,
       "what rank 0 prints of each logged step: plain: a short line, on a terminal a progress bar; "
       "megatron: Megatron-LM's line; json: every message as a JSON object")
      .one_of({"plain", "megatron", "json"});
  b.bytes("run.log_bytes", c.log_bytes,
          "size at which a rank's log file is rotated; one older file is kept; 0: never")
      .at_least(0);
  b.text("run.memory_check", c.memory_check,
         "off: start even where a host has less memory than its ranks are predicted to take")
      .one_of({"on", "off"});
}

}  // namespace

void bind(ConfigBinder& b, ModelConfig& c) {
  std::string preset;
  if (const auto named = b.given_text("model.preset"); named && !named->empty()) {
    const ModelPreset& found = model_preset(*named, b.origin_of("model.preset"));
    b.include_defaults("model", found.yaml, "preset " + *named);
  }
  b.text("model.preset", preset, "a model of configs/model/; other keys change parts of it");
  std::string family(family_name(c.family));
  b.text("model.family", family, "kind of transformer").one_of({"gpt2", "llama"});
  if (family == "gpt2" || family == "llama") {
    c.family = parse_family(family);
  }
  b.integer("model.layers", c.layers, "transformer blocks").required().at_least(1);
  b.integer("model.hidden", c.hidden, "width of the residual stream").required().at_least(1);
  b.integer("model.heads", c.heads, "query heads").required().at_least(1);
  b.integer("model.kv_heads", c.kv_heads, "key and value heads; 0: as many as heads").at_least(0);
  b.integer("model.head_dim", c.head_dim, "width of a head; 0: hidden / heads").at_least(0);
  b.integer("model.ffn", c.ffn, "width inside the MLP; 0: 4 x hidden (gpt2)").at_least(0);
  b.integer("model.vocab", c.vocab, "token ids").required().at_least(1);
  b.integer("model.context", c.context, "longest sequence, in tokens").required().at_least(1);
  b.boolean("model.tie_embeddings", c.tie_embeddings, "output matrix = token embedding");
  b.real("model.norm_epsilon", c.norm_epsilon, "inside the norms").above(0);
  b.real("model.rope_theta", c.rope_theta, "base of the rotary frequencies (llama)").above(0);
  b.real("model.rope_scaling.factor", c.rope_scaling.factor, "Llama 3's scaling; 0: none")
      .at_least(0);
  b.real("model.rope_scaling.low_frequency", c.rope_scaling.low_freq_factor, "below: scaled fully")
      .above(0);
  b.real("model.rope_scaling.high_frequency", c.rope_scaling.high_freq_factor, "above: unscaled")
      .above(0);
  b.integer("model.rope_scaling.original_context", c.rope_scaling.original_context,
            "context before scaling")
      .at_least(1);
  b.real("model.dropout", c.dropout, "of embedding and residual branches").at_least(0).below(1);
  b.real("model.attention_dropout", c.attention_dropout,
         "of attention's weights, after the softmax")
      .at_least(0)
      .below(1);
  b.real("model.initializer_range", c.initializer_range, "deviation of initial weights").above(0);
}

namespace {

void bind_all(ConfigBinder& b, RunConfig& c) {
  bind(b, c.model);
  bind(b, c.data);
  bind(b, c.train);
  bind(b, c.optimizer);
  bind(b, c.parallel);
  bind(b, c.checkpoint);
  bind(b, c.divergence);
  bind(b, c);
}

}  // namespace

std::vector<ResolvedKey> run_config_keys() {
  ConfigBinder b;
  RunConfig c;
  bind_all(b, c);
  return b.resolved();
}

LoadedConfig load_run_config(const ConfigSources& sources) {
  LoadedConfig loaded;
  ConfigBinder& b = loaded.binder;
  RunConfig& c = loaded.config;
  b.add_site_files(sources.site);
  b.add_file(sources.file);
  if (sources.environment != nullptr) {
    b.add_environment(sources.environment);
  }
  b.add_arguments(sources.arguments);
  bind_all(b, c);
  b.finish();  // before keys are compared: a divisor that is 0 ends the program
  check_together(b, c);
  b.finish();
  c.model.complete();
  c.model.validate();
  c.optimizer.options().validate();
  c.optimizer.schedule.validate();
  return loaded;
}

}  // namespace trireme
