#include <fmt/format.h>

#include "src/base/units.h"
#include "src/plan/step_parts.h"

namespace trireme {
namespace {

std::string seconds_text(double seconds) {
  return seconds >= 1      ? fmt::format("{:.3f} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.3f} ms", seconds * 1e3)
                           : fmt::format("{:.1f} us", seconds * 1e6);
}

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

using Lines = std::vector<std::string>;

void explain_products(const PlanWork& work, const PlanLayout& layout, const StepParts& p,
                      Lines& lines) {
  const double peak = peak_flops(work.cluster, work.precision);
  for (const ProductCost& product : block_products(work, layout)) {
    const PlannedProduct& s = product.shape;
    const double flops =
        2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
    lines.push_back(fmt::format(
        "  {}: [{},{}] x [{},{}] = {:.3g} FLOP forward in {} ({:.0f} % of the peak), backward {}",
        product.name, s.m, s.k, s.k, s.n, flops, seconds_text(product.forward),
        100 * flops / product.forward / peak, seconds_text(product.backward)));
  }
  lines.push_back(
      fmt::format("products = {} micro-batches x {:g} blocks x ({} + {}) = {}",
                  layout.micro_batches, p.layers, seconds_text(p.block.forward.products),
                  seconds_text(p.block.backward.products), seconds_text(p.time.products)));
}

void explain_blocks(const PlanWork& work, const PlanLayout& layout, const StepParts& p,
                    Lines& lines) {
  const auto line = [&](const char* name, double forward, double backward, double whole,
                        const std::string& how) {
    lines.push_back(fmt::format("{} = {} x {:g} x ({} + {}) = {}{}", name, layout.micro_batches,
                                p.layers, seconds_text(forward), seconds_text(backward),
                                seconds_text(whole), how));
  };
  const PassCost& f = p.block.forward;
  const PassCost& b = p.block.backward;
  line("attention", f.attention, b.attention, p.time.attention,
       work.software.materializes_attention
           ? "; scores are stored"
           : fmt::format("; 2 and 5 products of S x S/2 x D per head at {:.0f} and {:.0f} % of the "
                         "peak",
                         100 * work.cluster.efficiency.attention,
                         80 * work.cluster.efficiency.attention));
  line("kernels", f.kernels, b.kernels, p.time.kernels,
       fmt::format("; bytes / ({:g} GB/s x {:g})", work.cluster.device.memory_gb_per_s,
                   work.cluster.efficiency.memory));
  const RingGroup group = tensor_group(work.cluster, layout);
  line("tensor", f.tensor, b.tensor, p.time.tensor,
       group.ranks == 1
           ? ""
           : fmt::format("; 2 sums of 2 T H bytes over {} ranks at {:.1f} GB/s", group.ranks,
                         ring_bytes_per_second(work.cluster, group) / 1e9));
  lines.push_back(fmt::format(
      "recompute ({}) = {} x {:g} x {} = {}", name_of(layout.recompute), layout.micro_batches,
      p.layers, seconds_text(p.block.repeated.total()), seconds_text(p.time.recompute)));
  const std::string teacher =
      p.teacher > 0 ? fmt::format(", teacher {}", seconds_text(p.teacher)) : "";
  lines.push_back(
      fmt::format("head = output product {} + {}, loss {} + {}{}, over all: {}",
                  seconds_text(p.head.forward.products), seconds_text(p.head.backward.products),
                  seconds_text(p.head.forward.kernels), seconds_text(p.head.backward.kernels),
                  teacher, seconds_text(p.time.head)));
}

void explain_rest(const PlanWork& work, const PlanLayout& layout, const StepParts& p,
                  Lines& lines) {
  lines.push_back(fmt::format("transfer = {} x {} = {}", layout.micro_batches,
                              seconds_text(p.transfer), seconds_text(p.time.transfer)));
  lines.push_back(fmt::format("bubble = {} of the schedule {} - {} of work = {}",
                              seconds_text(p.pipeline.total), name_of(layout.schedule),
                              seconds_text(p.pipeline.busy), seconds_text(p.time.bubble)));
  const RingGroup group = replica_group(work.cluster, layout);
  lines.push_back(fmt::format(
      "gradients = {} over {} replicas at {:.1f} GB/s: {} in all, of which {} are not hidden",
      bytes_text(p.gradient_bytes), group.ranks, ring_bytes_per_second(work.cluster, group) / 1e9,
      seconds_text(p.gradient_whole), seconds_text(p.time.gradients)));
  lines.push_back(fmt::format("parameters = {} gathered (ZeRO {}): {} in all, {} not hidden",
                              bytes_text(p.parameter_bytes), layout.zero,
                              seconds_text(p.parameter_whole), seconds_text(p.time.parameters)));
  lines.push_back(layout.micro_batches == 1
                      ? "accumulate = 0, since there is one micro-batch"
                      : fmt::format("accumulate = {} x {:g} bytes x {} parameters{} = {}",
                                    layout.micro_batches, work.software.accumulate_bytes,
                                    format_count(p.accumulated),
                                    layout.zero == 3 ? " (this rank's share)" : "",
                                    seconds_text(p.time.accumulate)));
  lines.push_back(fmt::format("optimizer = {}", seconds_text(p.time.optimizer)));
  lines.push_back(fmt::format("checkpoint = {}", seconds_text(p.time.checkpoint)));
}

}  // namespace

std::vector<std::string> explain_step(const PlanWork& work, const PlanLayout& layout,
                                      const CheckpointStall& stall) {
  const StepParts p = step_parts(work, layout, BubbleMethod::simulated, stall);
  Lines lines;
  explain_products(work, layout, p, lines);
  explain_blocks(work, layout, p, lines);
  explain_rest(work, layout, p, lines);
  lines.push_back(fmt::format("step = the sum of these terms = {}", seconds_text(p.time.total())));
  return lines;
}

}  // namespace trireme
