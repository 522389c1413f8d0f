#include "src/plan/simulate/published_rates.h"

#include <algorithm>

#include "src/base/check.h"

namespace trireme {
namespace {

constexpr double rate(double faults, double nodes, double days) {
  return 1000 * faults / (nodes * days);
}

}  // namespace

const std::vector<PublishedRates>& published_rates() {
  // Llama 3: 419 unexpected interruptions of 2048 nodes in 54 days. Of these, 56 were software (54
  // bugs, 2 dependencies), 42 appear as hangs (35 network, 7 NCCL watchdog), and the others took a
  // node away.
  // OPT-175B: 35 manual and at least 70 automatic restarts of 124 nodes within 2 months, in which
  // over 100 hosts were replaced.
  // BLOOM: 1 to 2 failures of a GPU per week on 48 nodes.
  static const std::vector<PublishedRates> all = {
      {"llama3", "Llama 3 405B, arXiv:2407.21783, table 5", rate(56, 2048, 54), rate(42, 2048, 54),
       rate(321, 2048, 54)},
      {"opt175b", "OPT-175B, arXiv:2205.01068, section 2.5", rate(5, 124, 60), 0,
       rate(100, 124, 60)},
      {"bloom", "BLOOM, arXiv:2211.05100, section 3.2.6", 0, 0, rate(1.5, 48, 7)},
      {"rsc1", "Meta RSC-1, Kokolis et al., arXiv:2410.21680", 0, 0, 6.50},
      {"rsc2", "Meta RSC-2, Kokolis et al., arXiv:2410.21680", 0, 0, 2.34},
      {"none", "no faults but those given", 0, 0, 0},
  };
  return all;
}

std::vector<std::string> published_rate_names() {
  std::vector<std::string> names;
  for (const PublishedRates& rates : published_rates()) {
    names.emplace_back(rates.name);
  }
  return names;
}

const PublishedRates& published_rates_of(std::string_view name) {
  const auto& all = published_rates();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& rates) { return rates.name == name; });
  check(found != all.end(), "the name of published rates was not checked");
  return *found;
}

}  // namespace trireme
