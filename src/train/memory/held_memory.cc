#include "src/train/memory/held_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {

std::string held_by_pools(const Engine& engine) {
  DeviceContext& context = engine.context();
  const auto text = [](const char* name, const Pool& pool) {
    return fmt::format("{} {} (peak in use {})", name, format_bytes(pool.reserved_bytes()),
                       format_bytes(pool.peak_bytes()));
  };
  const MicroBatchGraphs* const graphs = engine.graphs();
  const std::int64_t repeated =
      graphs == nullptr ? 0 : graphs->activation_bytes() + graphs->exchanged_bytes();
  return fmt::format("held by the pools of this rank: {}, {}, {}, {}, those of CUDA graphs {}",
                     text("parameters, gradients and optimizer state", context.state()),
                     text("of these, exchanged with other ranks", context.exchange_state()),
                     text("activations", context.activations()),
                     text("activations exchanged with other ranks", context.exchange()),
                     format_bytes(repeated));
}

StepResult run_step(TrainStep& step, TrainingCounters& counters, int signal, const Engine& engine) {
  try {
    return step.run(counters, signal);
  } catch (const ResourceError& error) {
    throw ResourceError(fmt::format("{}; {}", error.what(), held_by_pools(engine)));
  }
}

}  // namespace trireme
