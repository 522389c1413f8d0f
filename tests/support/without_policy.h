// What commands ask in tests that are not about the policy of a site.
#pragma once

#include "src/policy/access.h"

namespace trireme {

inline AccessSource without_policy() {
  return []() -> const Access& {
    static const Access kAccess;
    return kAccess;
  };
}

}  // namespace trireme
