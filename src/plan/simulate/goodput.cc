#include "src/plan/simulate/goodput.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "src/base/check.h"

namespace trireme {

std::vector<SimulatedRun> simulate_draws(const JobModel& model, std::uint64_t seed, int draws,
                                         int threads) {
  std::vector<SimulatedRun> runs(static_cast<std::size_t>(draws));
  std::atomic<std::uint32_t> next{0};
  const auto work = [&] {
    for (std::uint32_t draw = next++; draw < runs.size(); draw = next++) {
      runs[draw] = simulate_job(model, draw_faults(model, seed, draw));
    }
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < std::min(threads, draws); ++thread) {
    others.emplace_back(work);
  }
  work();
  others.clear();
  return runs;
}

double Goodput::quantile(double q) const {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

Goodput summarize(const std::vector<SimulatedRun>& runs) {
  check(!runs.empty(), "there are runs to summarize");
  Goodput goodput;
  const double part = 1 / static_cast<double>(runs.size());
  for (const SimulatedRun& run : runs) {
    goodput.sorted.push_back(run.goodput());
    goodput.mean += part * run.goodput();
    for (std::size_t i = 0; i < kSimulatedCauses; ++i) {
      goodput.shares[i] += run.wall > 0 ? part * run.seconds[i] / run.wall : 0;
    }
    for (std::size_t i = 0; i < kJobFaultKinds; ++i) {
      goodput.faults[i] += part * static_cast<double>(run.faults[i]);
    }
    goodput.launches += part * static_cast<double>(run.launches);
    goodput.waits += part * static_cast<double>(run.waits);
    goodput.from_memory += part * static_cast<double>(run.from_memory);
    goodput.from_disk += part * static_cast<double>(run.from_disk);
    goodput.from_nothing += part * static_cast<double>(run.from_nothing);
  }
  std::sort(goodput.sorted.begin(), goodput.sorted.end());
  return goodput;
}

}  // namespace trireme
