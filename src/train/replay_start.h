// Where the steps of a run can be computed again from, with the data that they had: a run that went
// back has left data out, which the checkpoints from before it went back don't know of.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "mpi/communicator.h"
#include "src/train/engine/training_state.h"
#include "src/train/training_parts.h"

namespace trireme {

// For steps up to `last` of the run that stands at `now`: the checkpoint of the largest step below
// `last` whose data order is the run's up to there; the seed, where none is and no data was left
// out before; else nothing. What rank 0 sees.
std::optional<StartPoint> replay_start(const std::filesystem::path& folder,
                                       const TrainingCounters& now, std::int64_t last);
// The same on all ranks. Collective.
std::optional<StartPoint> agreed_replay_start(Communicator& world,
                                              const std::filesystem::path& folder,
                                              const TrainingCounters& now, std::int64_t last);

}  // namespace trireme
