// The section `optimizer` of a run's configuration.
#include "src/train/run/run_config.h"

namespace trireme {
namespace {

// A step is a 32-bit number.
constexpr double kMostSteps = 4294967295;

}  // namespace

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
  return options;
}

void bind(ConfigBinder& b, OptimizerConfig& c) {
  b.text("optimizer.name", c.name, "the optimizer").one_of({"adamw", "sgd", "muon"});
  b.real("optimizer.lr", c.lr, "peak learning rate").above(0);
  b.real_pair("optimizer.betas", c.betas, "adamw and muon: decay rates of the two moments")
      .at_least(0)
      .below(1);
  b.real("optimizer.eps", c.eps, "adamw and muon: added to the root of the second moment").above(0);
  b.real("optimizer.weight_decay", c.weight_decay, "decoupled, on matrices only").at_least(0);
  b.real("optimizer.momentum", c.momentum,
         "sgd and muon: what stays of the sum of earlier gradients")
      .at_least(0)
      .below(1);
  b.boolean("optimizer.nesterov", c.nesterov, "sgd and muon: Nesterov's momentum");
  b.real("optimizer.ema", c.ema,
         "decay of an exponential moving average of the weights, kept in checkpoints for eval and "
         "generate --ema; 0: none")
      .at_least(0)
      .below(1);
  b.real("optimizer.clip", c.clip, "largest norm of the global gradient; 0: no clipping")
      .at_least(0);
  std::string kind(schedule_name(c.schedule.kind));
  b.text("optimizer.schedule.kind", kind, "how the rate changes after warmup")
      .one_of({"cosine", "linear", "constant", "wsd", "inverse_sqrt"});
  c.schedule.kind = parse_schedule(kind);
  b.integer("optimizer.schedule.warmup", c.schedule.warmup, "steps of linear growth")
      .at_least(0)
      .at_most(kMostSteps);
  b.real("optimizer.schedule.min_lr", c.schedule.min_lr, "where the decay ends").at_least(0);
  b.integer("optimizer.schedule.decay", c.schedule.decay, "wsd: steps of decay at the end")
      .at_least(0)
      .at_most(kMostSteps);
  b.integer("optimizer.schedule.steps", c.schedule.steps,
            "length of the schedule in steps; 0: train.steps")
      .at_least(0)
      .at_most(kMostSteps);
}

}  // namespace trireme
