// Checks that the finished runs of a scaling study are those that the study asks for. Their folders
// may have been copied, moved, or made by another command.
#pragma once

#include <fmt/format.h>

#include "src/app/study/scale_study.h"
#include "src/base/error.h"
#include "src/study/measured_result.h"

namespace trireme {

// Returns what a finished run has measured. Throws ConfigError if it was made with another
// configuration or number of ranks than the study asks for, and DataError if its files are damaged
// or its times impossible. Messages name the folder, without which the same command repeats the
// run.
MeasuredResult read_scale_run(const ScaleStudy& study, const ScaleRun& run,
                              const TextReader& reader);

// Checks all finished runs, for a study that is about to make the others.
void check_finished_runs(const ScaleStudy& study);

// Calls use(), which reads a run, and returns its result. A DataError gets the advice to remove the
// run's folder.
template <class Use>
auto with_advice(const ScaleRun& run, const Use& use) {
  try {
    return use();
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}\nRemove the folder {} to measure again", error.what(),
                                run.folder.string()));
  }
}

}  // namespace trireme
