// Simulates many draws of a job and summarizes them: the distribution of goodput, where the time
// went on average, and which measure would buy how much. Goodput is the fraction of the wall time
// spent on steps that were kept. Pure: the result depends on the model and the seed, not on the
// number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/plan/simulate/job_simulation.h"

namespace trireme {

struct Goodput {
  std::vector<double> sorted;  // one for each draw
  double mean = 0;
  std::array<double, kSimulatedCauses> shares{};  // mean fractions of the wall time
  std::array<double, kJobFaultKinds> faults{};    // mean numbers
  double launches = 0, waits = 0, from_memory = 0, from_disk = 0, from_nothing = 0;

  // Returns the goodput that a fraction q of the draws does not exceed. q: in [0, 1].
  double quantile(double q) const;
};

std::vector<SimulatedRun> simulate_draws(const JobModel& model, std::uint64_t seed, int draws,
                                         int threads);
// runs: at least one.
Goodput summarize(const std::vector<SimulatedRun>& runs);

// A measure changes one thing of a job. Its gain is the mean difference of goodput to the job as it
// is, under the same faults.
struct Measure {
  std::string name;  // "times.relaunch halved, from 60 to 30 s"
  double goodput = 0;
  double gain = 0;
  double error = 0;  // standard error of the gain
};

// Returns the measures, the best first. runs: of the job as it is, with the same seed.
std::vector<Measure> compare_measures(const JobModel& model, const std::vector<SimulatedRun>& runs,
                                      std::uint64_t seed, int threads);

}  // namespace trireme
