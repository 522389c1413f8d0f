#include "src/train/run/optimizer_config.h"

#include "src/train/run/run_limits.h"

namespace trireme {

OptimizerOptions OptimizerConfig::options() const {
  OptimizerOptions options;
  options.kind = parse_optimizer(name);
  options.beta1 = static_cast<float>(betas[0]);
  options.beta2 = static_cast<float>(betas[1]);
  options.epsilon = eps;
  options.weight_decay = weight_decay;
  options.momentum = momentum;
  options.nesterov = nesterov;
  options.ema = ema;
  options.keep_zeros = keep_zeros;
  return options;
}

void bind(ConfigBinder& b, OptimizerConfig& c) {
  b.text("optimizer.name", c.name, "the optimizer").one_of({"adamw", "sgd", "muon"});
  b.real("optimizer.lr", c.lr, "peak learning rate").above(0);
  b.real_pair("optimizer.betas", c.betas, "adamw and muon: decay rates of the two moments")
      .at_least(0)
      .below(1);
  b.real("optimizer.eps", c.eps, "adamw and muon: added to the square root of the second moment")
      .above(0);
  b.real("optimizer.weight_decay", c.weight_decay,
         "decoupled weight decay, applied to matrices only")
      .at_least(0);
  b.real("optimizer.momentum", c.momentum,
         "sgd and muon: factor by which the sum of earlier gradients decays in each step")
      .at_least(0)
      .below(1);
  b.boolean("optimizer.nesterov", c.nesterov, "sgd and muon: use Nesterov momentum");
  b.real("optimizer.ema", c.ema,
         "decay of an exponential moving average of the weights. It is kept in checkpoints for "
         "trireme eval --ema and trireme generate --ema. 0: no average")
      .at_least(0)
      .below(1);
  b.boolean("optimizer.keep_zeros", c.keep_zeros,
            "weights of matrices that are exactly zero, such as those of a pruned checkpoint, stay "
            "zero");
  b.real("optimizer.clip", c.clip,
         "largest norm of the global gradient, to which larger gradients are scaled down; 0: no "
         "clipping")
      .at_least(0);
  std::string kind(schedule_name(c.schedule.kind));
  b.text("optimizer.schedule.kind", kind, "how the learning rate changes after the warmup")
      .one_of({"cosine", "linear", "constant", "wsd", "inverse_sqrt"});
  c.schedule.kind = parse_schedule(kind);
  b.integer("optimizer.schedule.warmup", c.schedule.warmup,
            "number of steps in which the learning rate grows linearly to its peak")
      .at_least(0)
      .at_most(kMostSteps);
  b.real("optimizer.schedule.min_lr", c.schedule.min_lr, "learning rate at the end of the decay")
      .at_least(0);
  b.integer("optimizer.schedule.decay", c.schedule.decay,
            "wsd: number of steps of linear decay at the end")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer("optimizer.schedule.steps", c.schedule.steps,
            "length of the schedule in steps; 0: equal to train.steps")
      .at_least(0)
      .at_most(kMostSteps);
}

}  // namespace trireme
