// ReplicaGuard detects silent data corruption: it compares digests of data that several ranks hold
// alike, across replicas and across a tensor-parallel group. A tensor-parallel group holds norms,
// the biases of second projections, learned positions and copies of key and value heads more than
// once. Up to ZeRO 2, working copies are compared, and without ZeRO also masters and moments;
// sharded data has one copy and is not compared. Collective; called between steps.
#pragma once

#include <cstdint>

#include "src/train/engine/engine.h"

namespace trireme {

// Throws DeviceError on every rank, naming the parameter and the rank and host that differ from the
// majority, or all that hold it if there is no majority. With a majority, the error is a RankFault
// (rank_fault.h). `step` is the last update, for the message.
void compare_replicas(Engine& engine, std::int64_t step);

// Takes the memory that compare_replicas() needs if the run compares (train.compare_every), so that
// no comparison waits for a device's driver to allocate it. Each rank by itself.
void reserve_comparison(Engine& engine);

}  // namespace trireme
