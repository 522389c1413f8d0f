// Finds the checkpoint from which steps of a run can be computed again with the data that they had.
// A run that rewound has left out data, of which the checkpoints before the rewind know nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "mpi/communicator.h"
#include "src/train/engine/training_state.h"
#include "src/train/parts/training_parts.h"

namespace trireme {

// Returns where to start for steps up to `last` of the run that is at `now`: the checkpoint of the
// largest step below `last` whose data order agrees with the run's; without one, the seed if no
// data was left out before `last`; else nothing. Reads the folder; for one rank.
std::optional<StartPoint> replay_start(const std::filesystem::path& folder,
                                       const TrainingCounters& now, std::int64_t last);
// Same, collective: rank 0 reads the folder, and all ranks return the same.
std::optional<StartPoint> agreed_replay_start(Communicator& world,
                                              const std::filesystem::path& folder,
                                              const TrainingCounters& now, std::int64_t last);

}  // namespace trireme
