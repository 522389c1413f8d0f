#include "src/compute/device_choice.h"
#include "src/train/run/run_config.h"
#include "src/train/run/run_limits.h"

namespace trireme {

std::optional<DType> dtype_of_precision(std::string_view word) {
  return word == "bf16"   ? std::optional(DType::bf16)
         : word == "fp16" ? std::optional(DType::f16)
         : word == "fp32" ? std::optional(DType::f32)
                          : std::nullopt;
}

namespace {

void bind_batches(ConfigBinder& b, TrainConfig& c) {
  b.integer("train.steps", c.steps, "number of optimizer steps of the whole run")
      .required()
      .at_least(1)
      .at_most(kMostSteps);
  b.integer("train.global_batch", c.global_batch,
            "sequences per step, over all ranks; a multiple of train.micro_batch")
      .required()
      .at_least(1);
  b.integer("train.batch_ramp.from", c.batch_ramp.from,
            "sequences per step at the start of the run, from which the batch grows to "
            "train.global_batch; 0: no ramp, every step has train.global_batch")
      .at_least(0);
  b.integer("train.batch_ramp.by", c.batch_ramp.by,
            "sequences that the batch grows by at a time; 0: no ramp")
      .at_least(0);
  b.integer("train.batch_ramp.every", c.batch_ramp.every,
            "steps between two increases of the batch; 0: no ramp")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer("train.micro_batch", c.micro_batch, "sequences that a rank computes at a time")
      .at_least(1);
}

void bind(ConfigBinder& b, LossScaleConfig& c) {
  b.real("train.loss_scale.initial", c.initial,
         "with fp16, factor of the loss in the first step, so that small gradients do not vanish; "
         "a power of two");
  b.integer("train.loss_scale.growth_interval", c.growth_interval,
            "steps in a row without overflow after which the factor is doubled. A step whose "
            "gradient overflows is skipped and halves it. 0: the factor never changes")
      .at_least(0)
      .at_most(kMostSteps);
  b.real("train.loss_scale.minimum", c.minimum,
         "smallest factor, where a gradient that is not finite counts as divergence; a power of "
         "two");
  b.real("train.loss_scale.maximum", c.maximum, "largest factor; a power of two");
}

void bind_products(ConfigBinder& b, TrainConfig& c) {
  b.text(
       "train.products", c.products,
       "in what the linear layers of the blocks multiply. precision: as train.precision says; fp8: "
       "numbers of 8 bits, on CUDA devices of compute capability 8.9 and later")
      .one_of({"precision", "fp8"});
  b.text("train.fp8.scaling", c.fp8_scaling,
         "scale of each operand of a product in fp8. current: from its own largest magnitude; "
         "delayed: from those of earlier steps")
      .one_of({"current", "delayed"});
  b.integer("train.fp8.history", c.fp8_history,
            "with delayed scaling, number of earlier steps whose largest magnitude counts")
      .at_least(1)
      .at_most(kMostFp8Steps);
}

void bind_evaluations(ConfigBinder& b, TrainConfig& c) {
  b.integer("train.eval_every", c.eval_every,
            "steps from one evaluation to the next; 0: evaluate only at the end")
      .at_least(0);
  b.integer("train.eval_samples", c.eval_samples,
            "sequences of the validation set that an evaluation uses")
      .at_least(1);
  b.integer("train.early_stop.patience", c.early_stop_patience,
            "end the run after this many evaluations in a row without an improvement; 0: never")
      .at_least(0);
  b.real("train.early_stop.min_delta", c.early_stop_min_delta,
         "the validation loss must be lower than the best one by more than this to be an "
         "improvement, in nats per token")
      .at_least(0);
}

}  // namespace

void bind(ConfigBinder& b, TrainConfig& c) {
  bind_batches(b, c);
  b.text("train.precision", c.precision,
         "precision of activations and matrix products; sums and master weights are always fp32. "
         "fp16 needs CUDA devices")
      .one_of({kPrecisions.begin(), kPrecisions.end()});
  bind(b, c.loss_scale);
  bind_products(b, c);
  b.real("train.label_smoothing", c.label_smoothing,
         "share of each target that is spread evenly over the vocabulary")
      .at_least(0)
      .below(1);
  b.real("train.z_loss", c.z_loss,
         "weight of the squared logarithm of the softmax's denominator in the loss; 0: none")
      .at_least(0)
      .at_most(1);
  b.integer("train.seed", c.seed, "seed of the initial weights and of dropout");
  b.integer("train.log_every", c.log_every, "steps from one logged step to the next").at_least(1);
  bind_evaluations(b, c);
  b.integer("train.max_skipped_steps", c.max_skipped_steps,
            "how many steps in a row may be skipped because the loss or the gradient is not finite "
            "or has a spike; one more ends the run with exit code 3")
      .at_least(0);
  b.text("train.device", c.device,
         "where the ranks compute: cpu, or cuda for one GPU per rank; auto: on GPUs if there are "
         "any; GPUs that cannot be used are then an error")
      .one_of(device_words());
  b.boolean("train.share_device", c.share_device,
            "whether ranks may share a GPU, or compute on a MIG slice or under MPS");
  b.text("train.attention", c.attention,
         "what computes attention on GPUs: the program's own kernels, or cuDNN, which a site "
         "installs. The two have different bits")
      .one_of({"own", "cudnn"});
  b.text("train.graphs", c.graphs,
         "whether micro-batches are recorded as CUDA graphs. auto: where the layout allows it")
      .one_of({"auto", "on", "off"});
  b.integer_or_word("train.threads", c.threads, {"auto"},
                    "compute threads per rank; auto: the rank's share of the cores it is bound to")
      .at_least(1)
      .at_most(1024);
  b.text("train.recompute", c.recompute,
         "what the backward pass computes again to save memory. selective: norms, activation "
         "functions and attention; full: whole blocks")
      .one_of({"none", "selective", "full"});
  b.integer("train.recompute_every", c.recompute_every,
            "with train.recompute: full, recompute the blocks whose number is a multiple of this")
      .at_least(1);
  b.integer("train.compare_every", c.compare_every,
            "steps from one comparison of replicated data to the next. A comparison finds silent "
            "data corruption; one is also made before each save. 0: never")
      .at_least(0);
  b.integer("train.straggler_every", c.straggler_every,
            "steps after which the ranks compare how long they computed. A rank that is slower in "
            "three comparisons in a row is reported. 0: never")
      .at_least(0);
}

}  // namespace trireme
