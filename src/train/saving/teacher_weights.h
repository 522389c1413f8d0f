// The teacher of a run with distillation (distill.teacher) is the newest valid step of a
// checkpoint, of any layout, or an imported model. Its manifest is read before the run is built,
// and its weights once the engine exists.
#pragma once

#include <string>

#include "io/checkpoint/step_keys.h"
#include "io/checkpoint/store.h"
#include "src/train/engine/engine.h"
#include "src/train/saving/initial_weights.h"

namespace trireme {

// Collective. Returns the configuration with what the teacher's manifest says of its model, and
// with the folder of the step, as rank 0 finds it, in distill.teacher; without a teacher, returns
// it as it is. All ranks throw NotFound or DataError if there is no valid step, and ConfigError if
// the model cannot be the teacher of the run's.
RunConfig with_teacher(RunConfig config, Communicator& world);

// Returns for the message about a resume with another teacher which step beside that in
// distill.teacher is the one with the digest that the checkpoint remembers, or that it is gone. Not
// collective.
std::string advice_on_other_teacher(const RunConfig& config, const std::string& saved_sha256);

// Collective. Throws what load_teacher() would throw if it can't open the teacher that
// with_teacher() has found. admit: as there.
void check_teacher_opens(const RunConfig& config, Communicator& world, StepKeys* keys,
                         const AdmitStep& admit);

// Collective. Loads the weights of the teacher on the ranks whose engine has one. keys: null if
// none are configured. admit: called with the step on all ranks before anything else is read;
// throws what keeps it from being used. All ranks throw ConfigError if the checkpoint has changed
// since with_teacher(), PolicyError if it can't be opened, and DataError for damage and for weights
// that are not finite. Returns a line for the log.
std::string load_teacher(const RunConfig& config, const Engine& engine, Communicator& world,
                         StepKeys* keys, const AdmitStep& admit);

}  // namespace trireme
