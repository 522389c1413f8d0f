#include "src/train/run/run_config.h"

#include "mpi/links/required_links.h"
#include "mpi/session/backend.h"
#include "src/base/error.h"
#include "src/parallel/pipeline/schedule.h"
#include "src/train/run/model_presets.h"
#include "src/train/run/run_config_checks.h"
#include "src/train/run/run_limits.h"
#include "src/train/run/site_log.h"

namespace trireme {

namespace {

// Upper limit for durations in seconds or hours, so that they fit into 64 bits of nanoseconds.
constexpr double kLongest = 1e8;

// Upper limit for ranks, more than any machine has; the product of three such degrees stays below
// 2^63.
constexpr double kMostRanks = 1048576;

void bind(ConfigBinder& b, DataConfig& c) {
  Mappings train;
  b.mappings("data.train", train, "path",
             "folder of the training dataset, as made by trireme data pack; or several datasets, "
             "each with path, weight, epochs and name, to mix (docs/datasets.md)")
      .required();
  c.train = read_data_sources(b, train);
  Mappings validation;
  b.mappings("data.validation", validation, "path",
             "folder of the validation dataset, or several datasets, each with path and name; "
             "empty: no evaluations");
  c.validation = read_evaluation_sets(b, validation);
  b.integer("data.sequence", c.sequence,
            "tokens per sample, at most model.context; 0: equal to model.context")
      .at_least(0);
  b.text("data.shuffle", c.shuffle,
         "order of the samples. block: blocks of neighbouring samples are shuffled, then the "
         "samples within a window of blocks; global: all samples are shuffled; none: the order of "
         "the files (docs/datasets.md)")
      .one_of({"block", "global", "none"});
  b.text(
       "data.documents", c.documents,
       "joined: a token sees all earlier tokens of its sample; separate: those of its own document "
       "alone, positions start anew in each document, and no token predicts the next document; "
       "only with model.family llama or model.alibi (docs/datasets.md)")
      .one_of({"joined", "separate"});
  b.integer("data.seed", c.seed, "seed of the order of the samples");
}

void bind(ConfigBinder& b, ParallelConfig& c) {
  b.text("parallel.layout", c.layout,
         "given: the keys below say how the run is divided; auto, also written as parallel: auto: "
         "dp, tp, pp, schedule, virtual_stages and zero are those that trireme plan predicts to be "
         "fastest for the ranks on the cluster of plan.cluster (docs/planner.md)")
      .one_of({"given", "auto"});
  b.integer_or_word("parallel.dp", c.dp, {"auto"},
                    "number of data-parallel replicas; auto: number of ranks / (tp x pp)")
      .at_least(1)
      .at_most(kMostRanks);
  b.integer_or_word("parallel.tp", c.tp, {"auto"},
                    "tensor-parallel ranks per stage; auto, if dp is given: the largest number "
                    "that divides the ranks of a replica, fits on one host and suits the model")
      .at_least(1)
      .at_most(kMostRanks);
  b.integer_or_word(
       "parallel.pp", c.pp, {"auto"},
       "pipeline stages per replica; auto, if dp is given: number of ranks / (dp x tp)")
      .at_least(1)
      .at_most(kMostRanks);
  b.text("parallel.schedule", c.schedule, "schedule of the pipeline (docs/parallelism.md)")
      .one_of(pipeline_schedule_names());
  b.integer("parallel.virtual_stages", c.virtual_stages,
            "interleaved schedule: virtual stages of the model per rank")
      .at_least(1)
      .at_most(1024);
  b.integer("parallel.zero", c.zero,
            "what is divided among the replicas. 0: nothing; 1: the optimizer state; 2: also "
            "gradients; 3: also parameters")
      .at_least(0)
      .at_most(3);
  b.text("parallel.sequence", c.sequence,
         "whether tensor-parallel ranks divide the tokens among them between their matrix "
         "products, which saves memory; auto: on if data.sequence is a multiple of tp")
      .one_of({"auto", "on", "off"});
  b.text("parallel.placement", c.placement,
         "print: show at the start which ranks form which groups, on which hosts, and why")
      .one_of({"quiet", "print"});
  b.bytes("parallel.bucket_bytes", c.bucket_bytes,
          "size of the buckets in which gradients are reduced")
      .at_least(1);
}

void bind(ConfigBinder& b, CheckpointConfig& c) {
  b.path("checkpoint.dir", c.dir, "checkpoint folder; empty: <run>/checkpoints");
  b.integer_or_word("checkpoint.every", c.every, {"auto"},
                    "steps from one save to the next; 0: save only at the end and when stopped; "
                    "auto: computed from the cost of a save and checkpoint.mtbf")
      .at_least(0);
  b.integer_or_word(
       "checkpoint.memory_every", c.memory_every, {"auto"},
       "steps from one save in the nodes' memory to the next; needs trireme launch, which keeps "
       "that memory when ranks die. 0: never; auto: as for checkpoint.every (docs/checkpoints.md)")
      .at_least(0);
  b.boolean("checkpoint.partner", c.partner,
            "copy the checkpoints in each node's memory to another node, so that they survive the "
            "loss of a node");
  b.real("checkpoint.mtbf", c.mtbf,
         "mean time between failures of the whole run in hours, for auto; 0: the rate that trireme "
         "launch has observed, otherwise 24")
      .at_least(0)
      .at_most(kLongest);
  b.integer("checkpoint.keep", c.keep, "number of newest checkpoints to keep").at_least(2);
  b.integer("checkpoint.keep_every", c.keep_every,
            "keep all steps that are a multiple of this; 0: none")
      .at_least(0);
  b.integer("checkpoint.keep_best", c.keep_best,
            "also save and keep this many steps with the lowest validation losses; 0: none")
      .at_least(0)
      .at_most(1000);
  b.integer_or_word("checkpoint.resume", c.resume, {"auto", "never"},
                    "the checkpoint to start from. auto: the newest valid one, if there is any; "
                    "never: start from the beginning; a number: this step")
      .at_least(1);
  b.path("checkpoint.init_from", c.init_from,
         "a checkpoint with whose weights a new run begins, for example an imported model. A run "
         "that resumes reads it only with lora.products or train.frozen. Empty: from train.seed");
  b.boolean("checkpoint.async", c.async,
            "write checkpoints in the background while training continues");
  b.boolean("checkpoint.force_lock", c.force_lock,
            "take over the folder from a run on another host that is known to be dead");
  b.texts("checkpoint.allow_change", c.allow_change,
          "configuration fields that may differ from those in the checkpoint");
}

void bind(ConfigBinder& b, DivergenceConfig& c) {
  b.text("divergence.not_finite", c.not_finite,
         "what to do if the loss or the gradient is not finite. skip: leave out the update (at "
         "most train.max_skipped_steps times in a row); rewind: go back to a checkpoint and leave "
         "out the data that led there; stop: end the run")
      .one_of({"skip", "rewind", "stop"});
  b.text("divergence.spike", c.spike,
         "what to do if the loss or the gradient norm has a spike, that is, stands out from the "
         "steps before")
      .one_of({"ignore", "warn", "skip", "rewind", "stop"});
  b.integer("divergence.window", c.window, "number of earlier steps with which a step is compared")
      .at_least(8)
      .at_most(kMostSpikeWindow);
  b.real(
       "divergence.threshold", c.threshold,
       "a value is a spike if it is more than this many deviations above the median of the window")
      .above(0);
  b.integer("divergence.rewind_steps", c.rewind_steps,
            "a rewind goes back at least this many steps, to a multiple of checkpoint.every")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer("divergence.skip_batches", c.skip_batches,
            "global batches after the bad step that a rewind leaves out as well")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer("divergence.max_rewinds", c.max_rewinds, "rewinds of the whole run; one more ends it")
      .at_least(0)
      .at_most(1000);
  b.integer("divergence.replay_steps", c.replay_steps,
            "before a rewind or stop, compute the steps since the newest checkpoint again, but at "
            "most this many. Other bits than before mean a hardware fault. 0: never")
      .at_least(0)
      .at_most(kMostSteps);
  b.boolean("divergence.digests", c.digests,
            "keep digests of the gradient of every micro-batch, so that a replay can name the rank "
            "whose bits differ; costs one pass over each gradient");
}

void bind(ConfigBinder& b, RunConfig& c) {
  b.text("numerics.reproducibility", c.reproducibility,
         "which runs have the same bits. elastic: runs with any dp that is a power of two; layout: "
         "runs with the same layout; fast: no promise (docs/reproducibility.md)")
      .one_of({"elastic", "layout", "fast"});
  b.boolean("numerics.self_check", c.self_check,
            "at the start, compare each kernel with the reference, at this run's sizes and "
            "threads; a host that computes wrong numbers is refused");
  b.text("comm.backend", c.comm_backend, "transport between ranks (docs/communication.md)")
      .one_of(backend_names());
  b.path(
      "comm.tuning", c.comm_tuning,
      "tuning table for comm.backend: auto, as written by trireme bench coll --write-tuning FILE");
  b.texts("comm.require", c.comm_require,
          "links between GPUs without which the run is refused. rdma: RDMA across the network; "
          "gpudirect: RDMA from and to the memory of the GPUs; nvlink: NVLink within hosts "
          "(docs/communication.md)")
      .one_of(link_requirements());
  b.real("comm.deadline.start", c.deadline.start,
         "seconds after which a wait during the start counts as a hang")
      .above(0)
      .at_most(kLongest);
  b.real("comm.deadline.step", c.deadline.step, "the same within a step")
      .above(0)
      .at_most(kLongest);
  b.real("comm.deadline.checkpoint", c.deadline.checkpoint, "the same during a save or load")
      .above(0)
      .at_most(kLongest);
  b.real("comm.deadline.evaluate", c.deadline.evaluate, "the same within an evaluation")
      .above(0)
      .at_most(kLongest);
  b.path("plan.cluster", c.plan_cluster,
         "cluster file, or name of one of configs/cluster/, that describes where the run computes: "
         "at its end, the run is compared with the prediction for it; empty: no prediction "
         "(docs/planner.md)");
  b.path("run.dir", c.run_dir, "folder of this run's files").required();
  b.text("run.name", c.run_name, "name of the run, which trireme slurm gives to the job");
  b.integer(
       "run.trace", c.trace,
       "number of steps to trace, from the third step of a start; 0: none (docs/parallelism.md)")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer_or_word("run.stop_before_end", c.stop_before_end, {"auto", "never"},
                    "seconds before the end of a Slurm job at which the run saves and exits; auto: "
                    "30 s plus twice the longest step and save so far (docs/slurm.md)")
      .at_least(1);
  b.text(
       "run.log_format", c.log_format,
       "how rank 0 prints a logged step. plain: a short line, or on a terminal a progress bar; "
       "megatron: the line of Megatron-LM; json: every message as a JSON object (docs/metrics.md)")
      .one_of({"plain", "megatron", "json"});
  b.bytes("run.log_bytes", c.log_bytes,
          "size at which a rank's log file is rotated; one older file is kept; 0: never")
      .at_least(0);
  b.text("run.memory_check", c.memory_check,
         "off: start even if a host has less memory than its ranks are predicted to need")
      .one_of({"on", "off"});
}

void bind_gpt2_options(ConfigBinder& b, ModelConfig& c) {
  b.boolean("model.alibi", c.alibi,
            "ALiBi instead of learned positions: a key's score falls with its distance (gpt2)");
  b.boolean("model.swiglu", c.swiglu,
            "SwiGLU with biases instead of GELU, as in Jais (gpt2; llama always has SwiGLU, "
            "without biases)");
  b.real("model.embedding_scale", c.embedding_scale,
         "factor of the embeddings of tokens and positions (gpt2)")
      .at_least(1e-6)
      .at_most(1e6);
  b.real("model.logit_scale", c.logit_scale, "factor of the logits (gpt2)")
      .at_least(1e-6)
      .at_most(1e6);
  b.real("model.attention_scale", c.attention_scale,
         "factor of the products of queries and keys, at least 1e-6; 0: 1 / sqrt(head_dim) (gpt2)")
      .at_least(0)
      .at_most(1e6);
}

}  // namespace

void bind(ConfigBinder& b, ModelConfig& c) {
  std::string preset;
  if (const auto named = b.given_text("model.preset"); named && !named->empty()) {
    const ModelPreset& found = model_preset(*named, b.origin_of("model.preset"));
    b.include_defaults("model", found.yaml, "preset " + *named);
  }
  b.text("model.preset", preset,
         "name of a model in configs/model/, whose values become the defaults of this section");
  std::string family(family_name(c.family));
  b.text("model.family", family, "architecture of the model").one_of({"gpt2", "llama"});
  if (family == "gpt2" || family == "llama") {
    c.family = parse_family(family);
  }
  b.integer("model.layers", c.layers, "number of transformer blocks").required().at_least(1);
  b.integer("model.hidden", c.hidden, "width of the residual stream").required().at_least(1);
  b.integer("model.heads", c.heads, "number of query heads").required().at_least(1);
  b.integer("model.kv_heads", c.kv_heads, "number of key and value heads; 0: equal to model.heads")
      .at_least(0);
  b.integer("model.head_dim", c.head_dim, "width of a head; 0: hidden / heads").at_least(0);
  b.integer("model.ffn", c.ffn,
            "width of the hidden layer of the MLP; 0: 4 x hidden (gpt2; llama requires a value)")
      .at_least(0);
  b.integer("model.vocab", c.vocab, "number of token ids").required().at_least(1);
  b.integer("model.context", c.context, "length of the longest sequence, in tokens")
      .required()
      .at_least(1);
  b.boolean("model.tie_embeddings", c.tie_embeddings,
            "use the token embedding as the output matrix");
  b.boolean("model.qkv_bias", c.qkv_bias,
            "whether queries, keys and values have biases, as in Qwen2 (llama; gpt2 always has "
            "them)");
  bind_gpt2_options(b, c);
  b.real("model.norm_epsilon", c.norm_epsilon,
         "added to the variance (LayerNorm) or mean square (RMSNorm) in the norms")
      .above(0);
  b.real("model.rope_theta", c.rope_theta, "base of the rotary frequencies (llama)").above(0);
  b.real("model.rope_scaling.factor", c.rope_scaling.factor,
         "factor of Llama 3's scaling of the rotary frequencies, at least 1; 0: no scaling")
      .at_least(0);
  b.real("model.rope_scaling.low_frequency", c.rope_scaling.low_freq_factor,
         "frequencies that turn fewer times than this within the original context are scaled by "
         "the whole factor")
      .above(0);
  b.real("model.rope_scaling.high_frequency", c.rope_scaling.high_freq_factor,
         "frequencies that turn more times than this within the original context are not scaled")
      .above(0);
  b.integer("model.rope_scaling.original_context", c.rope_scaling.original_context,
            "length of the context before scaling, in tokens")
      .at_least(1);
  b.real("model.dropout", c.dropout, "dropout rate of the embedding and of the residual branches")
      .at_least(0)
      .below(1);
  b.real("model.attention_dropout", c.attention_dropout,
         "dropout rate of the attention weights, after the softmax")
      .at_least(0)
      .below(1);
  b.real("model.initializer_range", c.initializer_range,
         "standard deviation of the initial weights")
      .above(0);
}

void bind(ConfigBinder& b, FrozenModules& c) {
  b.texts("train.frozen", c.paths,
          "modules that keep the weights of checkpoint.init_from while the others are trained: "
          "paths such as model.embed_tokens, model.layers.0-11 or model.layers.*.self_attn; empty: "
          "none (docs/finetune.md)");
}

void bind(ConfigBinder& b, LoraConfig& c) {
  b.texts("lora.products", c.products,
          "matrix products that are fine-tuned by adapters of low rank, beside the frozen weights "
          "of checkpoint.init_from: names of modules such as q_proj, or all; empty: all weights "
          "are trained (docs/finetune.md)");
  b.integer("lora.rank", c.rank, "rank of the adapters").at_least(1);
  b.real("lora.alpha", c.alpha, "the adapters' products are multiplied by lora.alpha / lora.rank")
      .above(0);
}

namespace {

void bind_all(ConfigBinder& b, RunConfig& c) {
  bind(b, c.model);
  bind(b, c.model.lora);
  bind(b, c.data);
  bind(b, c.distill);
  bind(b, c.train);
  bind(b, c.model.frozen);
  bind(b, c.optimizer);
  bind(b, c.parallel);
  bind(b, c.checkpoint);
  bind(b, c.divergence);
  bind(b, c);
  bind_site_keys(b, c);
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
  b.allow_word_for("parallel", "parallel.layout");
  b.add_arguments(sources.chosen, sources.chosen_by);
  bind_all(b, c);
  b.finish();  // before comparing keys, since check_together() divides by some of them
  check_together(b, c);
  if (const std::string fault = fault_of_site_log(b, c.audit, sources.site); !fault.empty()) {
    b.refuse("audit.log", fault);
  }
  b.finish();
  c.model.complete();
  c.model.validate();
  c.model.check_frozen_ranges();
  check_attention_shapes(c);
  c.optimizer.options().validate();
  c.optimizer.schedule.validate();
  return loaded;
}

}  // namespace trireme
