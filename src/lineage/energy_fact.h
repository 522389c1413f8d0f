// What statements say about the energy of a run, for people. A statement has the joules that one
// start of a run had used when the step was saved; nothing that could not be read is estimated:
//
//   "energy": {"since": "...Z", "cpu_joules": 812.5, "gpu_joules": null, "unknown": "..."}
//
// gpu_joules is there if the run has GPUs. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "src/evidence/bundle.h"

namespace trireme {

// Returns what a statement says, or "" if it says nothing about energy.
std::string energy_fact(const Provenance& provenance);
// Returns the sum of what the statements of a step and of its ancestors say, or that it is not
// known; "" if the step has no ancestors or says nothing. Only trusted statements count.
std::string energy_with_ancestors(const std::vector<SignedStatement>& statements);

}  // namespace trireme
