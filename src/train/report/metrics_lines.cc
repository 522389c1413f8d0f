// The lines about a logged step for people and for log scrapers (metrics.h).
#include <cmath>

#include <fmt/format.h>

#include "src/base/units.h"
#include "src/train/report/metrics.h"

namespace trireme {

std::string plain_step_line(const StepMetrics& m, const MetricsPlan& plan) {
  std::string line = fmt::format("step {}/{}  loss {:.4f}", m.step, plan.last_step, m.loss_mean);
  if (m.val_loss) {
    line += fmt::format("  validation {:.4f}", *m.val_loss);
  }
  // The evaluation of a step that an earlier start computed has no times.
  if (std::isfinite(m.tokens_per_s)) {
    line += fmt::format("  {} tokens/s", format_count(m.tokens_per_s));
  }
  if (m.step < plan.last_step && std::isfinite(m.tokens_per_s)) {
    const double seconds_left = static_cast<double>(m.tokens_left) / m.tokens_per_s;
    line += fmt::format("  {} left", format_seconds(seconds_left));
  }
  line += fmt::format("  lr {:.1e}  grad norm {:.2f}", m.lr, m.grad_norm);
  if (m.cross_entropy && m.kl_divergence) {
    line += fmt::format("  cross entropy {:.4f}  divergence {:.4f}", *m.cross_entropy,
                        *m.kl_divergence);
  }
  if (m.loss_scale) {
    line += fmt::format("  loss scale {}", *m.loss_scale);
  }
  return m.skipped_steps == 0 ? line : line + "  " + counted(m.skipped_steps, "step") + " skipped";
}

std::string megatron_step_line(const StepMetrics& m, const MetricsPlan& plan) {
  std::string line = fmt::format(
      "iteration {:8}/{:8} | consumed samples: {:12} | elapsed time per iteration (ms): {:.1f} | "
      "throughput per GPU (TFLOP/s/GPU): {:.3f} | learning rate: {:.6E} | global batch size: {:5} "
      "| lm loss: {:.9E} |{} grad norm: {:.3f} | number of skipped iterations: {:3} |",
      m.step, plan.last_step, m.samples, m.step_ms, m.flops_per_s_per_rank / 1e12, m.lr,
      m.global_batch, m.loss_mean,
      m.loss_scale ? fmt::format(" loss scale: {:.1f} |", *m.loss_scale) : "", m.grad_norm,
      m.skipped_steps);
  if (m.val_loss) {
    line += fmt::format(" validation loss: {:.9E} |", *m.val_loss);
  }
  return line;
}

}  // namespace trireme
