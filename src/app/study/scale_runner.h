// Makes the missing runs of a scaling study, with mpirun on this machine or as Slurm jobs.
#pragma once

#include "src/app/study/scale_study.h"

namespace trireme {

// Runs one after the other with mpirun, all on this machine. Prints a line for each to stderr.
// Throws IoError with the end of a run's output if it fails; the runs before it are kept.
void run_locally(const ScaleStudy& study);

// Submits a job for each missing run that has none, each to start after the end of the one before,
// and waits for them unless the options say otherwise. Returns whether all runs are done.
bool run_on_slurm(const ScaleStudy& study);

}  // namespace trireme
