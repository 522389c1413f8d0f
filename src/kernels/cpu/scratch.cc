#include "src/kernels/cpu/scratch.h"

#include <array>
#include <optional>

#include "src/device/pool.h"

namespace trireme::cpu {
namespace {

// Each slot has a pool of its own, so that a buffer that has become too small is returned to the
// system.
struct Slot {
  std::optional<Pool> pool;
  Buffer buffer;
};

}  // namespace

void* scratch(Scratch slot, std::int64_t bytes) {
  thread_local std::array<Slot, static_cast<std::size_t>(Scratch::count)> slots;
  Slot& own = slots[static_cast<std::size_t>(slot)];
  if (own.buffer.bytes() < bytes) {
    own.buffer = Buffer();
    own.pool.emplace(Device::cpu());
    own.buffer = own.pool->allocate(bytes);
  }
  return own.buffer.data();
}

}  // namespace trireme::cpu
