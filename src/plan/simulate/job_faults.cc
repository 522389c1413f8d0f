#include "src/plan/simulate/job_faults.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <tuple>

#include "src/base/philox.h"

namespace trireme {
namespace {

constexpr double kSecondsPerDay = 86400;
constexpr double kSecondsPerYear = 365 * kSecondsPerDay;

// Returns a number in (0, 1) made from 52 random bits.
double uniform_double(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 12;
  return (static_cast<double>(bits) + 0.5) * 0x1p-52;
}

// Spreads the lemons evenly over the nodes.
bool is_lemon(std::int64_t node, double share) {
  const auto index = static_cast<double>(node);
  return std::floor((index + 1) * share) > std::floor(index * share);
}

class FaultSource {
 public:
  FaultSource(const JobModel& model, std::uint64_t seed, std::uint32_t draw)
      : model_(model), key_(philox_key(seed)), draw_(draw) {}

  // per_second: the rate of one node, group or site.
  void add(JobFaultKind kind, std::int64_t node, double per_second) {
    if (per_second <= 0) {
      return;
    }
    const double end = model_.days * kSecondsPerDay;
    double at = 0;
    for (std::uint32_t number = 0;; ++number) {
      const PhiloxCounter random = philox(
          {number, static_cast<std::uint32_t>(node), static_cast<std::uint32_t>(kind), draw_},
          key_);
      at -= std::log(uniform_double(random[0], random[1])) / per_second;
      if (!(at < end)) {
        return;
      }
      faults_.push_back({at, kind, node, std::uint64_t{random[2]} << 32 | random[3]});
    }
  }

  std::vector<JobFault> sorted() && {
    std::sort(faults_.begin(), faults_.end(), [](const JobFault& a, const JobFault& b) {
      return std::tie(a.at, a.kind, a.node) < std::tie(b.at, b.kind, b.node);
    });
    return std::move(faults_);
  }

 private:
  const JobModel& model_;
  PhiloxKey key_;
  std::uint32_t draw_;
  std::vector<JobFault> faults_;
};

}  // namespace

JobFaults draw_faults(const JobModel& model, std::uint64_t seed, std::uint32_t draw) {
  FaultSource source(model, seed, draw);
  const JobModel::Rates& rates = model.rates;
  const double ordinary = 1 / (1 + rates.lemon_share * (rates.lemon_factor - 1));
  const std::int64_t nodes = model.nodes + model.spares;
  for (std::int64_t node = 0; node < nodes; ++node) {
    const double weight =
        is_lemon(node, rates.lemon_share) ? ordinary * rates.lemon_factor : ordinary;
    const double scale = weight / 1000 / kSecondsPerDay;
    source.add(JobFaultKind::process, node, rates.process * scale);
    source.add(JobFaultKind::hang, node, rates.hang * scale);
    source.add(JobFaultKind::node, node, rates.node * scale);
    source.add(JobFaultKind::straggler, node, rates.straggler * scale);
  }
  for (std::int64_t group = 0; group * model.group_nodes < nodes; ++group) {
    source.add(JobFaultKind::group, group, rates.group / 1000 / kSecondsPerDay);
  }
  source.add(JobFaultKind::site, 0, rates.site / kSecondsPerYear);
  return {std::move(source).sorted(), false};
}

double FaultFeed::next_at() const {
  constexpr double kNoFault = std::numeric_limits<double>::infinity();
  if (next_ == faults_.faults.size() || (faults_.per_attempt && !is_launched_)) {
    return kNoFault;
  }
  const JobFault& fault = faults_.faults[next_];
  return fault.after_step >= 0 ? kNoFault : fault.at + (faults_.per_attempt ? launched_ : 0);
}

double FaultFeed::next_step() const {
  const bool is_at_step = next_ < faults_.faults.size() && faults_.faults[next_].after_step >= 0;
  return is_at_step ? faults_.faults[next_].after_step : std::numeric_limits<double>::infinity();
}

double time_factor(const JobFault& fault, std::uint32_t which, double spread) {
  if (spread <= 0) {
    return 1;
  }
  const PhiloxCounter random = philox({which, 0, 0, 0}, philox_key(fault.mark));
  // Box and Muller's method: a normal number from two uniform ones.
  const double normal = std::sqrt(-2 * std::log(uniform_double(random[0], random[1]))) *
                        std::cos(2 * std::numbers::pi * uniform_double(random[2], random[3]));
  return std::exp(spread * normal - spread * spread / 2);
}

}  // namespace trireme
