#include "src/base/floating_point.h"

#include <atomic>
#include <cfenv>

#include <xmmintrin.h>

namespace trireme {
namespace {

std::atomic<std::int64_t> restorations{0};

}  // namespace

bool restore_floating_point() {
  // The default masks all exceptions, rounds to nearest and keeps denormals. Status flags are
  // ignored.
  constexpr unsigned kDefault = 0x1F80;
  constexpr unsigned kHappened = 0x3F;
  if ((_mm_getcsr() & ~kHappened) == kDefault) {
    return false;
  }
  std::fesetenv(FE_DFL_ENV);
  ++restorations;
  return true;
}

std::int64_t floating_point_restorations() { return restorations.load(); }

}  // namespace trireme
