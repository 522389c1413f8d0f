#include "src/plan/simulate/job_simulation.h"

#include "src/plan/simulate/simulated_job.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, kSimulatedCauses> kCauseNames = {
    "start",  "load",    "train",    "slow", "redone",      "checkpoint",
    "detect", "exclude", "relaunch", "wait", "maintenance", "finish"};

}  // namespace

std::string_view name_of(SimulatedCause cause) {
  return kCauseNames.at(static_cast<std::size_t>(cause));
}

SimulatedRun simulate_job(const JobModel& model, const JobFaults& faults) {
  return SimulatedJob(model, faults).run();
}

}  // namespace trireme
