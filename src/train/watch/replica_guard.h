// ReplicaGuard: finds silent data corruption. What several ranks hold alike is digested and
// compared, across replicas and across a tensor-parallel group, where norms, the biases of second
// projections, learned positions and copies of key and value heads stand more than once: what
// layers multiply with up to ZeRO 2, and without ZeRO the masters and moments, too. Of what is
// sharded there is one copy. Collective; called between steps.
#pragma once

#include <cstdint>

#include "src/train/engine/engine.h"

namespace trireme {

// DeviceError on every rank, with the parameter and the rank and host that differ from most others
// (of two ranks, both); where most others decide it is a RankFault (rank_fault.h). step: of the
// last update, for the message.
void compare_replicas(Engine& engine, std::int64_t step);

}  // namespace trireme
