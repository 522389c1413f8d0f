// Says what holds the memory of a rank when an allocation fails.
#pragma once

#include <new>
#include <string>
#include <string_view>

#include "src/base/error.h"
#include "src/base/out_of_memory.h"
#include "src/compute/device_context.h"
#include "src/train/engine/engine.h"

namespace trireme {

// Return what each pool has taken, and the most that it has handed out at one time. Pools keep both
// numbers when an error unwinds what they have handed out.
std::string held_by_pools(const DeviceContext& context);
// Adds the memory of the engine's CUDA graphs.
std::string held_by_pools(const Engine& engine);

// What takes less memory in training, for the end of a message.
inline constexpr std::string_view kLessInTraining =
    "; train.recompute and parallel.zero make it take less";

// Returns work(). If that runs out of memory, of the device or of the host, the ResourceError says
// what the pools of `holder` hold, a DeviceContext or an Engine, which outlives the call. Calls are
// not nested.
// advice: further words on what takes less memory.
template <class Holder, class Work>
auto naming_held_memory(const Holder& holder, Work work, std::string_view advice = "") {
  try {
    return work();
  } catch (const ResourceError& error) {
    throw ResourceError(fmt::format("{}{}; {}", error.what(), advice, held_by_pools(holder)));
  } catch (const std::bad_alloc&) {
    throw ResourceError(fmt::format("{}{}; {}", kOutOfMemory, advice, held_by_pools(holder)));
  }
}

}  // namespace trireme
