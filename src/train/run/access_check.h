// Asks the policy of each host of a run (src/policy/access.h).
#pragma once

#include "mpi/communicator.h"
#include "src/policy/access.h"

namespace trireme {

// Collective. Throws PolicyError on all ranks alike if the policy of any host forbids it.
void check_on_all_ranks(const Access& access, const Request& request, Communicator& comm);

// Collective. Throws PolicyError on all ranks alike if hosts have different policies, or only some
// of them have one: what a run may do must not depend on which rank asks.
void check_same_policy(const Access& access, Communicator& comm);

}  // namespace trireme
