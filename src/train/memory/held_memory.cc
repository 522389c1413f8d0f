#include "src/train/memory/held_memory.h"

#include "src/base/units.h"

namespace trireme {

std::string held_by_pools(const DeviceContext& context) {
  const auto text = [](const char* name, const Pool& pool) {
    return fmt::format("{} {} (peak in use {})", name, format_bytes(pool.reserved_bytes()),
                       format_bytes(pool.peak_bytes()));
  };
  return fmt::format("held by the pools of this rank: {}, {}, {}, {}, {}",
                     text("parameters, gradients and optimizer state", context.state()),
                     text("of these, exchanged with other ranks", context.exchange_state()),
                     text("activations", context.activations()),
                     text("activations exchanged with other ranks", context.exchange()),
                     text("memory of the host for copies", context.staging()));
}

std::string held_by_pools(const Engine& engine) {
  const MicroBatchGraphs* const graphs = engine.graphs();
  const std::int64_t repeated =
      graphs == nullptr ? 0 : graphs->activation_bytes() + graphs->exchanged_bytes();
  return fmt::format("{}, those of CUDA graphs {}", held_by_pools(engine.context()),
                     format_bytes(repeated));
}

}  // namespace trireme
