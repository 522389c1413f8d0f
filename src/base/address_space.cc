#include "src/base/address_space.h"

#include <malloc.h>
#include <sys/resource.h>

namespace trireme {

void use_one_heap_if_limited() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    (void)::mallopt(M_ARENA_MAX, 1);
  }
}

}  // namespace trireme
