// ReplicaGuard: finds silent data corruption. What several ranks hold alike is digested and
// compared: parameters across replicas (but ZeRO 3's, of which there is one copy), and those that
// are not cut across a tensor-parallel group. Collective; called between steps.
#pragma once

#include <cstdint>

#include "src/train/engine.h"

namespace trireme {

// DeviceError on every rank, with the parameter and the rank and host that differ from most others
// (of two ranks, both). step: of the last update, for the message.
void compare_replicas(Engine& engine, std::int64_t step);

}  // namespace trireme
