// Recovery: what a run does with a step that broke off (divergence.h): computes it again, to tell a
// fault of the hardware from one of data and optimizer, and then ends or goes back. Both begin as a
// restart does, with all parts built anew, but in the same process: no state can be left over.
// Owned by Training; every call is collective.
//
//   a checkpoint      c ........ d ........ s   the step that broke off; d: the newest one on disk
//   with
//                                                this line's data (replay_start.h)
//   replay                       d ........ s   the same bits? else DeviceError
//   rewind            c <-- c, saved anew with the window of data that is left out
#pragma once

#include <memory>
#include <string>

#include "src/train/step_records.h"
#include "src/train/training_parts.h"

namespace trireme {

class Recovery {
 public:
  Recovery(RunConfig config, const TrainingHost& host);

  // Of the latest steps.
  StepRecords& records() { return records_; }
  // The parts to go on with. DivergenceError if the run ends here, DeviceError if the replay has
  // other bits; RankFault if it is known whose. `failed`: the result of the step of
  // parts->counters.
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

// The steps that a run which failed on `failed` may go back to, the newest first: multiples of
// `every` at least `least` steps back that the folder holds and the run has passed; 0 where the
// first of them has no earlier multiple. What rank 0 sees.
std::vector<std::int64_t> rewind_steps(const std::filesystem::path& folder,
                                       const TrainingCounters& failed, std::int64_t every,
                                       std::int64_t least);

}  // namespace trireme
