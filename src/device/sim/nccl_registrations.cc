#include "src/device/sim/nccl_registrations.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <utility>

namespace sim {
namespace {

struct Registrations {
  std::mutex mutex;
  std::multiset<std::pair<const void*, const void*>> pairs;  // communicator and memory
  std::int64_t so_far = 0;
};

Registrations& all_registrations() {
  static auto* const made = new Registrations;
  return *made;
}

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "simulated device: NCCL: %s\n", what);
  std::abort();
}

}  // namespace

void note_registration(const void* communicator, const void* memory) {
  Registrations& all = all_registrations();
  const std::lock_guard lock(all.mutex);
  all.pairs.emplace(communicator, memory);
  ++all.so_far;
}

bool drop_registration(const void* communicator, const void* memory) {
  Registrations& all = all_registrations();
  const std::lock_guard lock(all.mutex);
  const auto found = all.pairs.find({communicator, memory});
  if (found == all.pairs.end()) {
    return false;
  }
  all.pairs.erase(found);
  return true;
}

void forget_registrations(const void* communicator) {
  Registrations& all = all_registrations();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.pairs, [=](const auto& each) { return each.first == communicator; });
}

void require_all_deregistered(const void* communicator) {
  Registrations& all = all_registrations();
  const std::lock_guard lock(all.mutex);
  for (const auto& [each, memory] : all.pairs) {
    if (each == communicator) {
      refuse("ncclCommDestroy: the communicator still has registered memory");
    }
  }
}

void require_not_registered(const void* memory) {
  Registrations& all = all_registrations();
  const std::lock_guard lock(all.mutex);
  for (const auto& [communicator, each] : all.pairs) {
    if (each == memory) {
      refuse("ncclMemFree: the memory is still registered with a communicator");
    }
  }
}

std::int64_t registrations() {
  Registrations& all = all_registrations();
  const std::lock_guard lock(all.mutex);
  return static_cast<std::int64_t>(all.pairs.size());
}

std::int64_t registrations_so_far() {
  Registrations& all = all_registrations();
  const std::lock_guard lock(all.mutex);
  return all.so_far;
}

}  // namespace sim
