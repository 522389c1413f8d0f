#include "src/train/memory/held_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {

std::string held_by_pools(DeviceContext& context) {
  const auto text = [](const char* name, const Pool& pool) {
    return fmt::format("{} {} (peak in use {})", name, format_bytes(pool.reserved_bytes()),
                       format_bytes(pool.peak_bytes()));
  };
  return fmt::format("held by the pools of this rank: {}, {}, {}, {}",
                     text("parameters, gradients and optimizer state", context.state()),
                     text("of these, exchanged with other ranks", context.exchange_state()),
                     text("activations", context.activations()),
                     text("activations exchanged with other ranks", context.exchange()));
}

StepResult run_step(TrainStep& step, TrainingCounters& counters, int signal,
                    DeviceContext& context) {
  try {
    return step.run(counters, signal);
  } catch (const ResourceError& error) {
    throw ResourceError(fmt::format("{}; {}", error.what(), held_by_pools(context)));
  }
}

}  // namespace trireme
