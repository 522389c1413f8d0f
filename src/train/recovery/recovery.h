// Recovery handles a step that broke off (divergence.h): it computes the step again, to distinguish
// a hardware fault from a fault of data or optimizer, and then ends the run or goes back. Replay
// and rewind begin as a restart does, with all parts built anew but in the same process, so that no
// state is left over. Owned by Training; every call is collective.
//
//   checkpoints       c ........ d ........ s   s: the step that broke off; d: the newest on disk
//                                               with this run's data order (replay_start.h)
//   replay                       d ........ s   the same bits? otherwise DeviceError
//   rewind            c <--                     c: saved again with the window of data left out
#pragma once

#include <memory>
#include <string>

#include "src/train/parts/training_parts.h"
#include "src/train/recovery/step_records.h"

namespace trireme {

class Recovery {
 public:
  Recovery(RunConfig config, const TrainingHost& host);

  // Returns the records of the latest steps.
  StepRecords& records() { return records_; }
  // Returns the parts to continue with. `failed`: the result of the step at parts->counters. Throws
  // DivergenceError if the run ends here, and DeviceError if the replay has other bits: RankFault
  // if the rank that computed them is known.
  std::unique_ptr<TrainingParts> after(std::unique_ptr<TrainingParts> parts,
                                       const StepResult& failed);

 private:
  std::string replay(const TrainingCounters& failed);
  void compare(TrainingParts& parts, std::int64_t step, const StepResult& again,
               const std::string& where) const;
  std::unique_ptr<TrainingParts> go_back(const std::vector<std::int64_t>& steps,
                                         const TrainingCounters& failed, const std::string& what);
  void say(const std::string& text) const;

  RunConfig config_;
  TrainingHost host_;
  StepRecords records_;
};

// Returns the steps to which a run that failed at `failed` may go back, the newest first: multiples
// of `every` at least `least` steps back that the folder holds and the run has been at; only 0, the
// seed, if there is no such multiple above 0. Reads the folder; for one rank.
std::vector<std::int64_t> rewind_steps(const std::filesystem::path& folder,
                                       const TrainingCounters& failed, std::int64_t every,
                                       std::int64_t least);

}  // namespace trireme
